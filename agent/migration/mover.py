"""Takes the topics of this broker's bundles to green, and back, as the migrations in Redis say.

new topics that clients ask for are recorded first of all: `agent.migration.new_topics`
each look, in parts of a quarter of a second, so that commands and the lease do not wait:
  read the migrations
  for each bundle that is served here:
    list its topics; enlist those of a scope, forget or finish those that users deleted
    say that all of the bundle are named, once all of them are
    carry out the step that is due for each topic
  those that were put off, until the next look is due
A migration whose step fails slowly, as its green does not answer, has its other steps put off:
other migrations, and the naming of bundles, would wait for each of its topics in turn.
A look begins when one is due (the migration says how often), or at once when the job commands it.
Both, and a bundle that is loaded, lead to the same steps: what is due depends on records alone.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Set
from contextlib import suppress
from itertools import islice
from typing import Final, TypeVar

import msgspec
import structlog

from agent.broker import Broker, CannotLoad
from agent.migration.guarded import GuardedPort
from agent.migration.left import Left, left_in
from agent.migration.new_topics import NewTopics
from agent.migration.port import CannotMigrate, Migrating
from agent.migration.records import Keep, Records
from agent.migration.taking import Case, restore, take
from agent.ownership.holdings import Holdings
from agent.ports import Topics
from trimtab.migration.life import UNDER_WAY
from trimtab.migration.migration import Migration, Target
from trimtab.migration.scopes import is_system
from trimtab.migration.steps import Step
from trimtab.migration.topic_life import FORGETTABLE, MAY_ENLIST, TopicEvent, TopicState
from trimtab.model import Epoch, namespace_of
from trimtab.wire.topics import LONGEST_PROBLEM, Named, TopicChange, TopicOutcome

log = structlog.get_logger()

PART_S: Final = 0.25
"""How long a part of a look may take. Longer: hand-overs wait for it; shorter: the loop turns for
little."""
LISTED: Final = 1000
"""Topics that are looked at, or enlisted, before the lease is kept again. More: a bundle of 50,000
takes as long as a lease; fewer: more is asked."""
SLOW_FAILURE_S: Final = 1.0
"""A step that fails after so long puts off those of its migration. Longer: other migrations wait
for a green that is away; shorter: one that is busy is asked less."""
SLOW_S: Final = 3.3
"""A step that takes longer is logged: a third of the lease that agents have by default. Shorter:
slow answers of green fill the log; longer: the log does not show why leases end."""
IDLE_S: Final = 10.0
"""Between two looks while nothing migrates. Longer: a broker that missed the command begins late;
shorter: more reading."""


T = TypeVar("T")


class Mover:
    """One broker's part in migrations; ``green_for`` is for any thread, the rest for the agent's.

    All other methods raise StoreUnavailable and Closed, and may be repeated.
    """

    def __init__(  # noqa: PLR0913 - who it is, and what it works with
        self,
        cluster: str,
        broker_id: str,
        session: int,
        broker: Broker,
        store: Topics,
        holdings: Holdings,
        clock: Callable[[], float],
    ) -> None:
        self._holdings = holdings
        self._records = Records(cluster, broker_id, session, store, clock)
        self._known = self._records.known
        self._new = NewTopics(self._records, holdings)
        self._broker = GuardedPort(broker) if isinstance(broker, Migrating) else None
        self._clock = clock
        self._look_at = -math.inf
        self._bundles = deque[str]()
        self._due = deque[tuple[str, str]]()
        """Bundles to be listed, and topics with a step that is due, in the present look."""
        self._put_off: dict[tuple[str, str], None] = {}
        """Topics with a step that is due, of migrations that are slow; the first waits longest."""
        self._owed = False
        """Whether one of these is to be done before the next look begins."""
        self._half_done = set[str]()
        """Topics for which the broker has done more, or less, than their record says."""
        self._named: dict[tuple[str, str], tuple[Epoch, int]] = {}
        self.counts = Counter[tuple[Step, bool]]()
        """Steps by kind, and whether they succeeded."""

    @property
    def next_at(self) -> float:
        """When the next part of a look is due, by the clock; infinite without the port."""
        if self._broker is None:
            return math.inf
        waits = self._bundles or self._due or self._put_off or self._new.wait
        return -math.inf if waits else self._look_at

    def green_for(self, topic: str) -> Target | None:
        """`agent.agent.Agent.green_for`; raises AskAgain."""
        return self._new.green_for(topic)

    def wake(self) -> None:
        """Look at once, as something has changed."""
        self._look_at = -math.inf

    def doubt(self) -> None:
        """Read all records again with the next look, and name all bundles again: a store that was
        restored or emptied may have lost some."""
        self._records.doubt(self._holdings.bundles())
        self._named.clear()

    def resume(self, bundle: str, keep: Keep) -> None:
        """Read what became of a bundle's topics, and make the broker do what it says, before the
        bundle is served; raises CannotLoad, and what ``keep`` raises, which is called in between:
        a bundle may have more topics than a lease lasts."""
        if self._broker is None:
            return
        # Fresh: a topic must not be created here by an owner that knows of no migration.
        self._records.read_migrations()
        self._records.read_again(bundle, keep)
        try:
            for case in self._known.cases(bundle):
                restore(self._broker, case)
                keep()
        except CannotMigrate as error:
            raise CannotLoad(f"{bundle}: {error}") from error

    def look(self, keep: Keep) -> None:
        """Do the next part of a look, if one is due; ``keep`` is called between topics."""
        if self._broker is None:
            return
        self._new.start(self._broker, keep)
        if self._clock() < self.next_at:
            return
        done = not (self._bundles or self._due or self._owed)
        if done and self._clock() >= self._look_at:
            self._begin()
        until = self._clock() + PART_S
        while (self._due or self._bundles or self._put_off) and self._clock() < until:
            keep()
            if self._due:
                self._step(self._broker, *self._due[0])
                self._due.popleft()
            elif self._bundles:
                self._list(self._broker, self._bundles[0], keep)
                self._bundles.popleft()
            else:
                longest, self._owed = next(iter(self._put_off)), False
                del self._put_off[longest]
                self._step(self._broker, *longest)

    def _begin(self) -> None:
        self._records.read_migrations()
        self._new.try_full()
        served = self._holdings.bundles()
        self._records.keep(served)
        self._named = {key: said for key, said in self._named.items() if key[0] in served}
        under_way = [m for m in self._known.migrations.values() if m.state in UNDER_WAY]
        checks = [each.check for each in under_way if each.check > 0]
        self._look_at = self._clock() + min(checks, default=IDLE_S)
        self._owed = bool(self._put_off)
        if self._known.migrations:
            self._bundles.extend(sorted(served))

    def _list(self, broker: GuardedPort, bundle: str, keep: Keep) -> None:
        """Enlist and forget topics of a bundle, and note which have a step that is due."""
        epoch = self._holdings.epoch(bundle)
        if epoch is None:
            return
        self._records.read(bundle, keep)
        # What cannot be listed is listed with the next look. The topics that are known go on.
        with suppress(CannotMigrate):
            self._enlist(broker, bundle, epoch, keep)
        self._ask(bundle, self._old(broker, bundle, epoch), keep)
        for case in _paced(self._known.cases(bundle), keep):
            is_due = case.step is not Step.REST or case.topic in self._half_done
            if is_due and (bundle, case.topic) not in self._put_off:
                self._due.append((bundle, case.topic))

    def _enlist(self, broker: GuardedPort, bundle: str, epoch: Epoch, keep: Keep) -> None:
        """Write down what is new of a bundle's topics; raises CannotMigrate too."""
        named, wrong = broker.list_topics(bundle)
        topics = {topic for topic in _paced(named, keep) if not is_system(topic)}
        changes = self._missing(bundle, epoch, topics, wrong, keep)
        accepted = all(answer.accepted for answer in self._ask(bundle, changes, keep))
        unlisted = any(self._known.unlisted(bundle, topics & self._half_done))
        if accepted and not unlisted and not wrong:
            self._name(bundle, epoch)

    def _missing(
        self, bundle: str, epoch: Epoch, topics: Set[str], wrong: Set[str], keep: Keep
    ) -> Iterator[TopicChange]:
        """What is to be asked for topics that have no record, or have one and are not there."""
        if any(each.state in MAY_ENLIST for each in self._known.migrations.values()):
            # Without those that the broker has still to open: their record is all that says so.
            done = _paced(sorted(topics - self._half_done), keep)
            for topic, migration in self._known.unlisted(bundle, done):
                yield self._records.enlist(bundle, epoch, topic, migration)
        for case in _paced(self._known.cases(bundle), keep):
            if case.topic not in topics and case.topic not in wrong:
                yield from self._deleted(bundle, epoch, case)

    def _old(self, broker: Migrating, bundle: str, epoch: Epoch) -> Iterator[TopicChange]:
        """What is to be asked for topics whose migration is remembered no longer."""
        for topic, record in tuple(self._known.left_over(bundle)):
            if topic in self._half_done:
                # No step of it will follow: those that were held for the last one are let in.
                try:
                    broker.release(topic)
                except CannotMigrate:
                    continue
                self._half_done.discard(topic)
            yield self._records.forget(bundle, epoch, topic, record.migration)

    def _deleted(self, bundle: str, epoch: Epoch, case: Case) -> Iterator[TopicChange]:
        """What is to be asked for a topic that its users have deleted."""
        if case.record.state in FORGETTABLE:
            yield self._records.forget(bundle, epoch, case.topic, case.migration.id)
        elif case.step is Step.DRAIN:
            # Nothing of it is left, and its broker can say nothing of a backlog.
            finish = TopicEvent.FINISH
            yield self._records.change(bundle, epoch, case.topic, finish, case.migration)
            self._half_done.add(case.topic)

    def _ask(self, bundle: str, changes: Iterator[TopicChange], keep: Keep) -> list[TopicOutcome]:
        answers = list[TopicOutcome]()
        while some := tuple(islice(changes, LISTED)):
            keep()
            answers += self._records.ask(bundle, *some)
        return answers

    def _name(self, bundle: str, epoch: Epoch) -> None:
        """Say that all topics of the bundle are enlisted, once for each wave."""
        named = [
            Named(bundle=bundle, epoch=epoch, migration=each.id, wave=each.wave)
            for each in self._known.migrations.values()
            if each.state in MAY_ENLIST and each.touches(namespace_of(bundle))
        ]
        new = [
            each
            for each in named
            if self._named.get((bundle, each.migration)) != (epoch, each.wave)
        ]
        if new:
            self._records.name(*new)
            self._named |= {(bundle, each.migration): (epoch, each.wave) for each in new}

    def _step(self, broker: Migrating, bundle: str, topic: str) -> None:
        case, epoch = self._known.case_of(bundle, topic), self._holdings.epoch(bundle)
        if case is None or epoch is None:
            return

        def ask(event: TopicEvent | None, left: Left, gone: str = "") -> TopicOutcome:
            change = self._records.change(bundle, epoch, topic, event, case.migration, left)
            [outcome] = self._records.ask(bundle, msgspec.structs.replace(change, gone=gone))
            return outcome

        step, began = case.step, self._clock()
        try:
            if topic in self._half_done:
                restore(broker, case)
                self._half_done.discard(topic)
            take(broker, case, ask)
        except CannotMigrate as error:
            self._fail(bundle, epoch, case, str(error))
            self.counts[step, False] += 1
            if self._clock() - began > SLOW_FAILURE_S:
                self._put_off_all_of(case.migration)
                self._put_off[bundle, topic] = None
        else:
            self.counts[step, True] += 1
        took = self._clock() - began
        if took > SLOW_S:
            log.warning(
                "a step of a topic that migrates keeps the broker from its lease",
                topic=topic,
                step=step.value,
                seconds=round(took, 1),
            )

    def _put_off_all_of(self, slow: Migration) -> None:
        """Have the steps of a migration that are due wait until all else is done."""
        kept = deque[tuple[str, str]](islice(self._due, 1))
        for each in islice(self._due, 1, None):
            case = self._known.case_of(*each)
            if case is not None and case.migration.id == slow.id:
                self._put_off[each] = None
            else:
                kept.append(each)
        self._due = kept

    def _fail(self, bundle: str, epoch: Epoch, case: Case, why: str) -> None:
        """Note why a step failed; it is tried again at the next look."""
        now = self._known.case_of(bundle, case.topic)
        if now is None:
            return
        if now.record.state is not case.record.state or now.record.state is TopicState.ACTIVE:
            # The broker did not follow the record that it has just got; or holds the producers of
            # a topic that the next look may leave alone.
            self._half_done.add(case.topic)
        left = left_in(now.record)
        change = self._records.change(bundle, epoch, case.topic, None, case.migration, left)
        # It may quote a name of whatever bytes.
        text = why.encode(errors="replace").decode()
        problem = (text or "no reason given")[:LONGEST_PROBLEM]
        self._records.ask(bundle, msgspec.structs.replace(change, problem=problem))


def _paced(items: Iterable[T], keep: Keep) -> Iterator[T]:
    """The same, and the lease is kept in between: any number of them may be looked at."""
    for number, item in enumerate(items, 1):
        yield item
        if number % LISTED == 0:
            keep()
