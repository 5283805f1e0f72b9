"""One broker and its records: what it may serve, and what it reports to the store.

A transition that reports a command is harmless to repeat: its id is ``{command id}/{event}``, so
the store gives a repeated request its first answer. If the store refuses, the broker follows the
record instead.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from agent.broker import Broker, CannotLoad
from agent.ownership.holdings import Holdings
from agent.ownership.seen import Seen
from agent.ports import Store
from sinks.errors import Unavailable
from trimtab.model import NO_EPOCH
from trimtab.ownership import SERVING, Event, State
from trimtab.wire.command import Command, CommandKind
from trimtab.wire.ownership import Neighbour, Record, Transition, TransitionOutcome

_RETIRING: Final = frozenset({CommandKind.SPLIT, CommandKind.MERGE})
"""Commands that are answered with RETIRE; their bundle is served until then."""


class Obeyed(StrEnum):
    """How a command ended; the label of the agent's counter."""

    DONE = "done"
    REFUSED = "refused"
    """The store did not accept the broker's report."""
    STALE = "stale"
    """The record has changed since: the command came late or twice."""
    DECLINED = "declined"
    """The broker cannot load the bundle."""


@dataclass(slots=True)
class Obeyer:
    """Obeys one broker's commands; ``broker_id`` is the broker's name in the records."""

    cluster: str
    broker_id: str
    session: int
    broker: Broker
    store: Store
    holdings: Holdings
    seen: Seen
    declined: Callable[[Command, str], None] = lambda *_: None
    """Called with a split's command and the reason why the bundle stays whole."""
    forgotten: Callable[[str, Record], None] = lambda *_: None
    """Called with a bundle that an open store has given to this broker, by a record older than one
    that it saw: it does not serve by that."""
    frozen: Callable[[str, Record], None] = lambda *_: None
    """Called with a bundle of this broker whose record no request can change."""
    resume: Callable[[str], None] = lambda _: None
    """Makes the broker do what a bundle's migrating topics need before it serves the bundle; raises
    CannotLoad."""
    look_at_topics: Callable[[], None] = lambda: None
    """Has the steps of migrating topics looked for at once."""
    counts: Counter[tuple[CommandKind, Obeyed]] = field(default_factory=Counter)

    def settle(self, bundle: str, record: Record | None) -> None:
        """Make the broker, and what it may serve, agree with the record.

        A record older than one that was seen comes from a store that lost data: it grants nothing.
        """
        if record is None or not self.seen.note(bundle, record) or not self.serves_by(record):
            self.stop_serving(bundle)
            return
        if not self.holdings.leased():
            # The broker took too long, and the record may be of a later process: the next renewal
            # finds the gap, and everything is claimed again.
            return
        try:
            self.load(bundle)
        except CannotLoad:
            self.stop_serving(bundle)
            self.give_up(bundle)
        else:
            self.holdings.hold(bundle, record.epoch)

    def give_up(self, bundle: str) -> Record | None:
        """Release a bundle that this broker owns and that is not moving; returns the record after.

        A bundle on the move has a deadline after which the job decides.
        """
        record = self.seen.record(bundle)
        if record is None or record.state is not State.OWNED or not self.serves_by(record):
            return record
        epoch = f"{record.epoch.generation}.{record.epoch.counter}"
        asked = Transition(
            id=f"{self.broker_id}/{bundle}/{epoch}/{Event.RELEASE.value}",
            bundle=bundle,
            event=Event.RELEASE,
            expect=record.epoch,
            actor=self.broker_id,
            session=self.session,
        )
        after = self.store.apply(self.cluster, asked).record
        if after is not None:
            self.seen.note(bundle, after)
        return after

    def claim(self, bundle: str, known: Record) -> TransitionOutcome:
        """Claim a bundle that this broker owns, by its known record; it gets a new epoch."""
        return self.store.apply(self.cluster, self.claiming(bundle, known))

    def claiming(self, bundle: str, known: Record | None, event: Event = Event.CLAIM) -> Transition:
        """The request that claims the bundle, or that declines it because it cannot be loaded."""
        expect = known.epoch if known else NO_EPOCH
        return Transition(
            id=f"{self.broker_id}/{self.session}/{bundle}"
            f"/{expect.generation}.{expect.counter}/{event.value}",
            bundle=bundle,
            event=event,
            expect=expect,
            broker=self.broker_id,
            actor=self.broker_id,
            session=self.session,
        )

    def take_back(self, bundle: str, record: Record) -> None:
        """Claim a bundle that this broker serves by its record, but does not hold.

        It stopped serving for a command that had no effect, and did not learn of that.
        """
        lacks = record.state is State.OWNED and record.owner == self.broker_id
        if lacks and not self.holdings.holds(bundle) and self.seen.note(bundle, record):
            self.follow_claim(self.claim(bundle, record))

    def serves_by(self, record: Record) -> bool:
        """Whether the record lets this broker serve."""
        return record.owner == self.broker_id and record.state in SERVING

    def stop_serving(self, bundle: str) -> None:
        """Refuse clients, then drain."""
        self.holdings.drop(bundle)
        if bundle in self.broker.bundles():
            self.broker.unload(bundle)

    def load(self, bundle: str) -> None:
        """Load the bundle without serving it yet; raises CannotLoad."""
        if bundle not in self.broker.bundles():
            self.broker.load(bundle)
        if not self.holdings.holds(bundle):
            self.resume(bundle)

    def report(self, command: Command, event: Event, *commands: Command) -> Obeyed:
        """Report to the store what was done for ``command``, and follow its answer."""
        return self.follow(self.apply(command, event, commands))

    def follow(self, outcome: TransitionOutcome) -> Obeyed:
        """Make the broker agree with the store's answer."""
        self.settle(outcome.bundle, outcome.record)
        for bundle, record in outcome.others.items():
            self.settle(bundle, record)
        return Obeyed.DONE if outcome.accepted else Obeyed.REFUSED

    def follow_claim(self, outcome: TransitionOutcome) -> bool:
        """Make the broker agree with the answer to a claim; False if it is to claim again.

        A refused claim grants nothing, though the record may name this broker: an earlier process
        of this name may have served by its epoch, and storage could not tell the two apart.
        """
        record = outcome.record
        if not outcome.accepted and record is not None and self.serves_by(record):
            self.holdings.drop(outcome.bundle)
            return False
        if (
            outcome.accepted
            and record is not None
            and record.epoch < self.seen.epoch(outcome.bundle)
        ):
            self.forgotten(outcome.bundle, record)
        self.settle(outcome.bundle, record)
        return True

    def retire(
        self, command: Command, children: tuple[str, ...], neighbour: Neighbour | None = None
    ) -> TransitionOutcome:
        """Ask the store to replace a bundle by ``children``. The broker serves it meanwhile.

        If no answer comes, the broker stops serving it. The store may have replaced it, and may
        then lose that change: a rebuild would give the bundle to another broker.
        """
        try:
            return self.apply(command, Event.RETIRE, children=children, neighbour=neighbour)
        except Unavailable:
            self.holdings.drop(command.bundle)
            if neighbour is not None:
                self.holdings.drop(neighbour.bundle)
            raise

    def apply(
        self,
        command: Command,
        event: Event,
        commands: tuple[Command, ...] = (),
        children: tuple[str, ...] = (),
        neighbour: Neighbour | None = None,
    ) -> TransitionOutcome:
        """Send the store the transition that answers ``command``."""
        transition = Transition(
            id=f"{command.id}/{event.value}",
            bundle=command.bundle,
            event=event,
            expect=command.epoch,
            actor=self.broker_id,
            session=self.session,
            commands=commands,
            neighbour=neighbour,
            children=children,
            within_ms=max(0, command.deadline - command.issued_at),
        )
        return self.store.apply(self.cluster, transition)

    def holds(self, command: Command, record: Record | None) -> bool:
        """Whether a command must still be obeyed, by its bundle's present record."""
        # This command itself changed the record, and was then interrupted: continue it.
        if record is not None and record.by.rpartition("/")[0] == command.id:
            return True
        if record is None or not self.seen.note(command.bundle, record):
            # The store has lost data. A command that may be half done is repeated: it waits while
            # the store is closed, and then the epoch decides.
            return command.kind in _RETIRING
        return record.epoch == command.epoch

    def has_done(self, command: Command, event: Event, record: Record) -> bool:
        """Whether the record is the result of this answer to ``command``."""
        return record.by == f"{command.id}/{event.value}"
