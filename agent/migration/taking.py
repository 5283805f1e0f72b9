"""Carries out the step that is due for one topic: what the broker does, and what is written down.

The order is always: what harms no client, then the record, then what cannot be undone.
  begin      create it on green; hold its producers, and clients that would make a subscription;
             create on green the subscriptions made meanwhile; record; end its writes, redirect
             its producers
  catch up   hold; if other regions lack nothing: create subscriptions on green; record; as above;
             else record which lack how much
  drain      redirect drained subscriptions; record what is left; if nothing is: remove the topic
  release    record; let producers in
  take back  end it on green; record; serve it here again, if green had taken no write; what blue
             has lost stays on green, and is recorded so; a green that is given up is not asked
A record that is refused means that others decided meanwhile, or that the answer to the same request
was lost: the broker follows the record that stands, as it does one that was granted. A broker that
crashes after the record finds it when the bundle is loaded (`restore`), before it serves a client.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Final, NamedTuple, Protocol

import structlog

from agent.migration.left import NOTHING_LEFT, Left, left_in, left_to_read, left_to_replicate
from agent.migration.port import Migrating, TopicGone, TopicLost
from trimtab.migration.life import MigrationState
from trimtab.migration.migration import Migration, Target
from trimtab.migration.steps import Step, next_step
from trimtab.migration.topic_life import TopicEvent, TopicState
from trimtab.wire.topics import TopicOutcome, TopicRecord, TopicRefused

log = structlog.get_logger()


class Ask(Protocol):
    """Has the store change the topic's record, or only what is left in it; raises Closed."""

    def __call__(self, event: TopicEvent | None, left: Left, gone: str = "") -> TopicOutcome:
        """``gone``: where a topic that stays has gone on to from green."""
        ...


_ELSEWHERE: Final = frozenset({TopicRefused.NOT_OWNER, TopicRefused.NO_LEASE})
"""Refusals that say that another broker goes on: what this one does with the topic is over."""
_DONE_BEFORE: Final = frozenset({TopicState.REPLICATING, TopicState.DRAINING})
"""States whose work is done before the record."""


class Case(NamedTuple):
    """A topic, its record, and its migration."""

    topic: str
    record: TopicRecord
    migration: Migration
    green: Target
    """Where its clients go: mostly where its migration leads."""
    overtaken: bool = False
    """Whether a later migration may have begun with the topic too: the store was restored to what
    was before it."""

    @property
    def step(self) -> Step:
        """What is due for it."""
        record = self.record
        return next_step(self.migration, record.wave, record.state, stays=record.stays)


def take(broker: Migrating, case: Case, ask: Ask) -> None:
    """Carry out the step that is due; raises CannotMigrate and what ``ask`` raises."""
    act = _ACTS.get(case.step)
    if act is not None:
        act(broker, case, ask)


def restore(broker: Migrating, case: Case) -> None:
    """Make the broker do what the topic's record says, before it serves it; raises CannotMigrate.

    Its own files may say less than the record, if its last owner crashed, or more.
    """
    topic, record = case.topic, case.record
    match record.state:
        case TopicState.REPLICATING:
            broker.hold(topic)
        case _ if (
            case.step is Step.TAKE_BACK and case.migration.state is MigrationState.ROLLED_BACK
        ):
            # It was back, and the store is restored to what was before: the broker knows better
            # than the record, until green is asked once more.
            return
        case TopicState.TERMINATED | TopicState.DRAINING:
            broker.terminate(topic, case.green)
        case TopicState.MIGRATED:
            broker.remove(topic, case.green)
        case _:
            if record.back and not case.overtaken:
                broker.reopen(topic)
            else:
                # Held for a step that failed. No more: the store may have lost the record of the
                # end of its writes, and green takes them.
                broker.release(topic)


def _begin(broker: Migrating, case: Case, ask: Ask) -> None:
    created = broker.backlog(case.topic).keys()
    broker.create_on(case.green, case.topic)
    broker.hold(case.topic)
    left = left_to_replicate(broker.replication_backlog(case.topic))
    if left.regions:
        _follow(broker, case, ask(TopicEvent.HOLD, left))
    else:
        _terminate(broker, case, ask, created)


def _catch_up(broker: Migrating, case: Case, ask: Ask) -> None:
    broker.hold(case.topic)
    left = left_to_replicate(broker.replication_backlog(case.topic))
    if not left.regions:
        # An earlier owner may have held it, hours ago, and let subscriptions be made in between.
        _terminate(broker, case, ask, ())
    elif left != left_in(case.record) or case.record.problem:
        _follow(broker, case, ask(None, left))


def _terminate(broker: Migrating, case: Case, ask: Ask, created: Collection[str]) -> None:
    """From the record on every broker redirects; a held topic takes no write meanwhile, and no
    subscription. Those that green does not have, as it has ``created`` alone, would miss what is
    written there before their consumers come."""
    backlog = broker.backlog(case.topic)
    if not backlog.keys() <= set(created):
        broker.create_on(case.green, case.topic)
    _follow(broker, case, ask(TopicEvent.TERMINATE, left_to_read(backlog)))


def _drain(broker: Migrating, case: Case, ask: Ask) -> None:
    topic, record = case.topic, case.record
    # Again: it may have failed after the record.
    broker.terminate(topic, case.green)
    backlog = broker.backlog(topic)
    for subscription, messages in backlog.items():
        if messages == 0:
            broker.redirect(topic, subscription, case.green)
    left = left_to_read(backlog)
    if left.messages == 0:
        _follow(broker, case, ask(TopicEvent.FINISH, NOTHING_LEFT))
    elif record.state is not TopicState.DRAINING or left != left_in(record) or record.problem:
        _follow(broker, case, ask(TopicEvent.DRAIN, left))


def _release(broker: Migrating, case: Case, ask: Ask) -> None:
    _follow(broker, case, ask(TopicEvent.REOPEN, NOTHING_LEFT))


def _take_back(broker: Migrating, case: Case, ask: Ask) -> None:
    if case.migration.alone:
        log.warning("a topic comes back without green, which is given up", topic=case.topic)
        _follow(broker, case, ask(TopicEvent.REOPEN, NOTHING_LEFT))
        return
    try:
        is_back = broker.take_back(case.topic, case.green)
    except TopicGone as error:
        log.warning(
            "a rollback leaves a topic where it has gone", topic=case.topic, cause=str(error)
        )
        ask(TopicEvent.STAY, left_in(case.record), error.where)
        return
    except TopicLost as error:
        # Who had not read it all is kept: only a backup of blue has what they lack.
        left = left_in(case.record)
        log.warning("a rollback leaves a topic on green", topic=case.topic, cause=str(error))
        _follow(broker, case, ask(TopicEvent.LOSE, left._replace(messages=0)))
        return
    if is_back:
        _follow(broker, case, ask(TopicEvent.REOPEN, NOTHING_LEFT))
    else:
        ask(TopicEvent.STAY, left_in(case.record))


def _follow(broker: Migrating, case: Case, outcome: TopicOutcome) -> None:
    """Make the broker do what the record now says, whether the change was granted or refused."""
    record = outcome.record
    if outcome.reason in _ELSEWHERE:
        return
    if record is None:
        broker.release(case.topic)
    elif not outcome.accepted or record.state not in _DONE_BEFORE:
        restore(broker, case._replace(record=record))


_ACTS: Final[Mapping[Step, Callable[[Migrating, Case, Ask], None]]] = {
    Step.BEGIN: _begin,
    Step.CATCH_UP: _catch_up,
    Step.DRAIN: _drain,
    Step.RELEASE: _release,
    Step.TAKE_BACK: _take_back,
}
