"""Doing what the job commands, one bundle at a time.

A command holds while the bundle's record has the epoch the command was issued at. Its action and
the transition that reports it are harmless to repeat: the transition's id is
``{command id}/{event}``, so the store answers the second asking as it did the first. Where the
store refuses, the broker is brought in line with the record instead.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from agent.broker import Broker, CannotLoad
from agent.holdings import Holdings
from sinks.ownership_store import OwnershipStore
from trimtab.model import NO_EPOCH, Epoch
from trimtab.ownership import Event, State
from trimtab.wire.command import Command, Kind
from trimtab.wire.ownership import Outcome, Record, Transition

SERVING: Final = frozenset({State.OWNED, State.RELEASING, State.SPLITTING, State.MERGING})
"""States in which the record's owner serves clients."""


class Obeyed(StrEnum):
    """How a command ended; the label of the agent's counter."""

    DONE = "done"
    REFUSED = "refused"
    """The store did not accept what the broker reported."""
    STALE = "stale"
    """The record has moved on: the command came late or twice."""
    DECLINED = "declined"
    """The broker cannot load the bundle."""
    UNKNOWN = "unknown"
    """A kind this agent does not know: a newer job commands it."""


class Obeyer:
    """Carries out one broker's commands; ``broker_id`` is the name the records know it by."""

    def __init__(
        self,
        cluster: str,
        broker_id: str,
        broker: Broker,
        store: OwnershipStore,
        holdings: Holdings,
    ) -> None:
        self.cluster = cluster
        self.broker_id = broker_id
        self.broker = broker
        self.store = store
        self.holdings = holdings
        self.counts: Counter[tuple[Kind, Obeyed]] = Counter()
        self._highest: dict[str, Epoch] = {}

    def obey(self, command: Command) -> Obeyed:
        """Act and report; raises StoreUnavailable or Closed, and may be repeated after these."""
        action = ACTIONS.get(command.kind)
        if action is None:
            obeyed = Obeyed.UNKNOWN
        elif not self._holds(command):
            obeyed = Obeyed.STALE
        else:
            obeyed = action(self, command)
        self.counts[command.kind, obeyed] += 1
        return obeyed

    def settle(self, bundle: str, record: Record | None) -> None:
        """Make the broker, and what it may serve, agree with the record."""
        if record is not None:
            self._saw(bundle, record.epoch)
        if record is None or not self.serves_by(record):
            self.stop_serving(bundle)
            return
        try:
            self.load(bundle)
        except CannotLoad:
            # The record stands, and the job sees that its owner does not report the bundle.
            self.stop_serving(bundle)
        else:
            self.holdings.hold(bundle, record.epoch)

    def serves_by(self, record: Record) -> bool:
        """Whether the record lets this broker serve."""
        return record.owner == self.broker_id and record.state in SERVING

    def stop_serving(self, bundle: str) -> None:
        """Turn clients away, then drain."""
        self.holdings.drop(bundle)
        if bundle in self.broker.bundles():
            self.broker.unload(bundle)

    def load(self, bundle: str) -> None:
        """Have the bundle loaded, not yet served; raises CannotLoad."""
        if bundle not in self.broker.bundles():
            self.broker.load(bundle)

    def report(self, command: Command, event: Event, *commands: Command) -> Obeyed:
        """Tell the store what was done for ``command``, and follow what it answers."""
        outcome = self._apply(command, event, commands)
        self.settle(command.bundle, outcome.record)
        return Obeyed.DONE if outcome.accepted else Obeyed.REFUSED

    def _apply(self, command: Command, event: Event, commands: tuple[Command, ...]) -> Outcome:
        transition = Transition(
            id=f"{command.id}/{event.value}",
            bundle=command.bundle,
            event=event,
            expect=command.epoch,
            actor=self.broker_id,
            commands=commands,
            within_ms=max(0, command.deadline - command.issued_at),
        )
        return self.store.apply(self.cluster, transition)

    def _holds(self, command: Command) -> bool:
        if command.epoch < self._highest.get(command.bundle, NO_EPOCH):
            return False
        record = self.store.record(self.cluster, command.bundle)
        if record is None:
            return False
        # Ahead of the command by this command's own doing: its answer was lost, so ask once more.
        mine = record.by.rpartition("/")[0] == command.id
        if not mine:
            self._saw(command.bundle, record.epoch)
        return mine or record.epoch == command.epoch

    def _saw(self, bundle: str, epoch: Epoch) -> None:
        self._highest[bundle] = max(epoch, self._highest.get(bundle, NO_EPOCH))


def _unload(obeyer: Obeyer, command: Command) -> Obeyed:
    obeyer.stop_serving(command.bundle)
    return obeyer.report(command, Event.RELEASE)


def _transfer(obeyer: Obeyer, command: Command) -> Obeyed:
    obeyer.stop_serving(command.bundle)
    if command.destination is None:
        return obeyer.report(command, Event.RELEASE)
    own = Command(
        id=f"{command.id}/own",
        cluster=command.cluster,
        broker=command.destination,
        kind=Kind.OWN,
        bundle=command.bundle,
        source=obeyer.broker_id,
        reason=command.reason,
        plan=command.plan,
    )
    return obeyer.report(command, Event.HAND_OVER, own)


def _prepare(obeyer: Obeyer, command: Command) -> Obeyed:
    obeyer.broker.prepare(command.bundle)
    return Obeyed.DONE


def _own(obeyer: Obeyer, command: Command) -> Obeyed:
    try:
        obeyer.load(command.bundle)
    except CannotLoad:
        obeyer.report(command, Event.DECLINE)
        return Obeyed.DECLINED
    return obeyer.report(command, Event.SERVE)


ACTIONS: Final[Mapping[Kind, Callable[[Obeyer, Command], Obeyed]]] = MappingProxyType(
    {
        Kind.UNLOAD: _unload,
        Kind.TRANSFER: _transfer,
        Kind.PREPARE: _prepare,
        Kind.OWN: _own,
    }
)
