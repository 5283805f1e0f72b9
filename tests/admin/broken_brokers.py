"""The example broker with one guard taken out: ``python -m tests.admin.broken_brokers NAME``."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, NamedTuple

import msgspec

from admin.conformance.subject import run
from agent.agent import Agent
from agent.broker import Broker
from agent.commands.obeying import Obeyer
from agent.links import Links
from agent.ownership.agreement import Agreement
from agent.ownership.holdings import Holdings
from agent.settings import AgentSettings
from sinks.errors import StoreUnavailable
from sinks.redis.command_streams import CommandStream
from sinks.redis.leasing.lease import Lease, Renewal
from sinks.redis.leasing.leases import Leases
from trimtab.model import NO_EPOCH
from trimtab.ownership import Event
from trimtab.wire.assertion import Assertion
from trimtab.wire.command import Command, CommandKind
from trimtab.wire.ownership import Neighbour, Record, TransitionOutcome


class _WithAgreement(Agent):
    agreement: type[Agreement]

    def __init__(self, broker: Broker, settings: AgentSettings, links: Links) -> None:
        super().__init__(broker, settings, links)
        self._agreement = self.agreement(
            settings, links, self._lease, self._obeyer, self._reports.report_if_due
        )


class _Once(Agreement):
    def renew_if_due(self) -> None:
        if not self.reached:
            super().renew_if_due()


class _RenewsOnce(_WithAgreement):
    agreement = _Once


class _NeedsNoLease(Holdings):
    def leased(self, seconds: float = 0.0) -> bool:  # noqa: ARG002 - as what it overrides
        return True


class _Eternal(Agent):
    def __init__(self, broker: Broker, settings: AgentSettings, links: Links) -> None:
        super().__init__(broker, settings, links)
        self._holdings = self._obeyer.holdings = _NeedsNoLease(links.clock)


class _WithObeyer(Agent):
    obeyer: type[Obeyer]

    def __init__(self, broker: Broker, settings: AgentSettings, links: Links) -> None:
        super().__init__(broker, settings, links)
        self._obeyer = self.obeyer(
            settings.cluster,
            settings.broker,
            settings.session,
            broker,
            links.store,
            self._holdings,
            links.seen,
        )
        self._agreement = Agreement(
            settings, links, self._lease, self._obeyer, self._reports.report_if_due
        )


class _Obedient(Obeyer):
    def holds(self, command: Command, record: Record | None) -> bool:  # noqa: ARG002 - as what it overrides
        return True


class _Eager(Obeyer):
    """Serves what it is only to prepare."""

    def holds(self, command: Command, record: Record | None) -> bool:
        if command.kind is CommandKind.PREPARE:
            self.load(command.bundle)
            self.holdings.hold(command.bundle, command.epoch)
        return super().holds(command, record)


class _ServesPrepared(_WithObeyer):
    obeyer = _Eager


class _ObeysOld(_WithObeyer):
    obeyer = _Obedient


class _Clinging(Obeyer):
    def stop_serving(self, bundle: str) -> None: ...


class _ServesWhileGiving(_WithObeyer):
    obeyer = _Clinging


class _ClingsToUnloaded(Obeyer):
    """Stops only for what it hands to another broker."""

    def stop_serving(self, bundle: str) -> None:
        record = self.store.record(self.cluster, bundle)
        if record is not None and record.destination is not None:
            super().stop_serving(bundle)


class _ServesWhileReleasing(_WithObeyer):
    obeyer = _ClingsToUnloaded


class _Silent(Obeyer):
    def apply(
        self,
        command: Command,
        event: Event,
        commands: tuple[Command, ...] = (),  # noqa: ARG002 - as what it overrides
        children: tuple[str, ...] = (),
        neighbour: Neighbour | None = None,
    ) -> TransitionOutcome:
        return super().apply(command, event, (), children, neighbour)


class _TellsNoBroker(_WithObeyer):
    obeyer = _Silent


class _Believing(Agreement):
    def _seed(self) -> None:
        self._renew()
        settings = self._settings
        records = self._links.store.records_of(settings.cluster, settings.broker)
        for bundle, record in records.items():
            self._obeyer.settle(bundle, record)
        self._agreed_after, self._was_closed = self._lease.lapses, False


class _BelievesRecords(_WithAgreement):
    agreement = _Believing


class _NeverLooking(Agreement):
    def _look_again(self) -> None: ...


class _NeverLooks(_WithAgreement):
    agreement = _NeverLooking


class _JustStops(Agent):
    def end(self) -> None: ...


class _LeavesFirst(Agent):
    def end(self) -> None:
        self._lease.leave_to_the_next()
        time.sleep(0.5)
        super().end()


class _Hasty(Agent):
    """Takes the lease to be valid to its very end."""

    def __init__(self, broker: Broker, settings: AgentSettings, links: Links) -> None:
        super().__init__(broker, replace(settings, lease_margin=0.0), links)


class _Unacknowledged(CommandStream):
    def acknowledge(self, ids: object) -> None: ...


class _Chokes(CommandStream):
    def _drop(self, useless: dict[str, str]) -> None:
        if useless:
            raise StoreUnavailable("an entry cannot be read")


class _Strict(CommandStream):
    def _command(self, fields: dict[bytes, bytes] | None) -> Command:
        known = {field.encode_name for field in msgspec.structs.fields(Command)}
        told = msgspec.json.decode((fields or {}).get(b"command", b"{}"))
        if isinstance(told, dict) and told.keys() - known:
            raise ValueError("unknown members")
        return super()._command(fields)


class _Hears(Leases):
    """Hears something else than what was answered."""

    def heard(self, lease: Lease, wanted: Lease) -> Lease:
        """``wanted`` is the answer that grants the lease without a gap."""
        raise NotImplementedError

    def renew(  # noqa: PLR0913 - as what it overrides
        self,
        cluster: str,
        broker: str,
        session: int,
        ttl_ms: int,
        assertion: Assertion | None = None,
        asked_for_ms: int = 0,
    ) -> Lease:
        lease = super().renew(cluster, broker, session, ttl_ms, assertion, asked_for_ms)
        wanted = lease._replace(renewal=Renewal.HELD, detail=str(session), ms=ttl_ms)
        return self.heard(lease, wanted)


class _Deaf(_Hears):
    """Takes every answer for a lease."""

    def heard(self, lease: Lease, wanted: Lease) -> Lease:
        return wanted if lease.renewal in (Renewal.WAITING, Renewal.SUPERSEDED) else lease


class _TrustsMasters(_Hears):
    """Takes every master's data to be complete."""

    def heard(self, lease: Lease, wanted: Lease) -> Lease:  # noqa: ARG002 - as what it overrides
        return lease._replace(must_have_left_ms=0)


class _TrustsNoMaster(_Hears):
    """Takes another master's lease for a new one."""

    def heard(self, lease: Lease, wanted: Lease) -> Lease:  # noqa: ARG002 - as what it overrides
        first = self.__dict__.setdefault("first", lease.history)
        return lease if lease.history == first else lease._replace(detail="")


class _Misquotes(Leases):
    """Tells a closed store something else than it was told."""

    def quote(self, assertion: Assertion) -> Assertion:
        raise NotImplementedError

    def renew(  # noqa: PLR0913 - as what it overrides
        self,
        cluster: str,
        broker: str,
        session: int,
        ttl_ms: int,
        assertion: Assertion | None = None,
        asked_for_ms: int = 0,
    ) -> Lease:
        said = assertion and self.quote(assertion)
        return super().renew(cluster, broker, session, ttl_ms, said, asked_for_ms)


class _Forgetful(_Misquotes):
    def quote(self, assertion: Assertion) -> Assertion:  # noqa: ARG002 - as what it overrides
        return Assertion(records={})


class _SaysOnce(_Misquotes):
    """Tells the same each time."""

    def quote(self, assertion: Assertion) -> Assertion:
        first: Assertion = self.__dict__.setdefault("first", assertion)
        return first


class _Presuming(Obeyer):
    """Takes every answer for a yes."""

    def settle(self, bundle: str, record: Record | None) -> None:
        self.load(bundle)
        self.holdings.hold(bundle, record.epoch if record else NO_EPOCH)


class _Presumes(_WithObeyer):
    obeyer = _Presuming


class _ByEpochAlone(Obeyer):
    def holds(self, command: Command, record: Record | None) -> bool:
        return record is not None and record.epoch == command.epoch


class _ByAnyRecord(Obeyer):
    """Serves by a record that refused its claim."""

    def follow_claim(self, outcome: TransitionOutcome) -> bool:
        self.settle(outcome.bundle, outcome.record)
        return True


class _ServesRefused(_WithObeyer):
    obeyer = _ByAnyRecord


class _LeavesHalves(_WithObeyer):
    obeyer = _ByEpochAlone


class _Unworried(Obeyer):
    """Serves on while it does not know what became of its retire."""

    def retire(
        self, command: Command, children: tuple[str, ...], neighbour: Neighbour | None = None
    ) -> TransitionOutcome:
        return self.apply(command, Event.RETIRE, children=children, neighbour=neighbour)


class _ServesUnanswered(_WithObeyer):
    obeyer = _Unworried


class _Unquestioning(Agreement):
    """Stops for what a record gives to another, however old it is."""

    def _look_again(self) -> None:
        settings, obeyer = self._settings, self._obeyer
        held = obeyer.holdings.bundles()
        records = obeyer.store.records_of(settings.cluster, settings.broker, held)
        for bundle, record in records.items():
            if record.owner != settings.broker:
                obeyer.stop_serving(bundle)
        super()._look_again()


class _Credulous(_WithAgreement):
    agreement = _Unquestioning


class _Counting(Agreement):
    def _renew(self) -> Lease:
        lease = super()._renew()
        until = self._links.clock() + lease.ms / 1000 - self._settings.lease_margin
        self._obeyer.holdings.extend(until)
        return lease


class _CountsFromAnswers(_WithAgreement):
    agreement = _Counting


class _SeedsOnce(Agent):
    """Does not look whether its lease went on while it seeded."""

    def __init__(self, broker: Broker, settings: AgentSettings, links: Links) -> None:
        super().__init__(broker, settings, links)
        self._lease.serve_nothing = lambda: None  # type: ignore[method-assign] # the guard


class Fault(NamedTuple):
    """What is taken out, and the rules that then are not kept."""

    rules: Sequence[str]
    agent: type[Agent] = Agent
    leases: type[Leases] = Leases
    commands: type[CommandStream] = CommandStream


FAULTS: Final = {
    "renews-once": Fault(["renews-lease"], _RenewsOnce),
    "needs-no-lease": Fault(["stops-without-lease"], _Eternal),
    "serves-prepared": Fault(["prepares"], _ServesPrepared),
    "obeys-old": Fault(["refuses-old"], _ObeysOld),
    "serves-while-giving": Fault(["stops-first"], _ServesWhileGiving),
    "serves-while-releasing": Fault(["stops-first"], _ServesWhileReleasing),
    "tells-no-broker": Fault(["hands-over"], _TellsNoBroker),
    "believes-records": Fault(["seeds", "agrees-again", "waits-for-open"], _BelievesRecords),
    "never-looks": Fault(["obeys-nothing-closed", "looks-again"], _NeverLooks),
    "just-stops": Fault(["ends"], _JustStops),
    "leaves-first": Fault(["ends"], _LeavesFirst),
    "hasty": Fault(["stops-without-lease"], _Hasty),
    "deaf": Fault(["gives-way", "serves-once"], leases=_Deaf),
    "trusts-masters": Fault(["doubts-master"], leases=_TrustsMasters),
    "trusts-no-master": Fault(["follows-master"], leases=_TrustsNoMaster),
    "forgetful": Fault(["asserts"], leases=_Forgetful),
    "says-once": Fault(["asserts-again"], leases=_SaysOnce),
    "presumes": Fault(["obeys-refusal", "obeys-refused-claim"], _Presumes),
    "serves-refused": Fault(["claims-once-more"], _ServesRefused),
    "leaves-halves": Fault(["finishes"], _LeavesHalves),
    "serves-unanswered": Fault(["waits-for-retire"], _ServesUnanswered),
    "credulous": Fault(["keeps-newest"], _Credulous),
    "counts-from-answers": Fault(["counts-from-request"], _CountsFromAnswers),
    "seeds-once": Fault(["seeds-again"], _SeedsOnce),
    "unacknowledged": Fault(["acknowledges"], commands=_Unacknowledged),
    "chokes": Fault(["drops-poison", "skips-unknown-kinds"], commands=_Chokes),
    "strict": Fault(["ignores-members"], commands=_Strict),
}


def _adapted(fault: Fault, links: Links) -> Links:
    assert isinstance(links.leases, Leases)
    assert isinstance(links.commands, CommandStream)
    links.leases.__class__ = fault.leases
    links.commands.__class__ = fault.commands
    return replace(links)


if __name__ == "__main__":
    chosen = FAULTS[sys.argv[1]]
    run(chosen.agent, lambda links: _adapted(chosen, links))
