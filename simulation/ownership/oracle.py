"""The rules that must hold at every moment, whatever breaks.

No two processes serve overlapping ranges. Epochs of a bundle only grow in the order in which
changes of it are accepted, on any server, and no epoch is given to two records. The token that a
process shows to the storage below is above all tokens that others have shown. The records tile
every namespace while the store is open. The auditor reads what reaches Kafka: it finds no rule
broken, and misses no change unless a fault made the store lose some.

Each check costs only what has changed since the last one; from time to time everything is checked.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from simulation.ownership.host import Host
from simulation.ownership.redis.rules import span_of
from simulation.ownership.redis.server import MemoryServer
from trimtab.auditing.auditor import NOTES, Audit, ViolationKind
from trimtab.model import NO_EPOCH, Epoch, HashRange, namespace_of
from trimtab.ownership import Event, State
from trimtab.tiling import flaws
from trimtab.wire.ownership import Change, Record

_TOLD: Final = 12
"""Changes of a bundle that a violation lists."""

TIMELESS: Final = frozenset(
    {ViolationKind.CONFLICT, ViolationKind.TWO_OWNERS, ViolationKind.GENERATION}
)
"""Findings that are valid even if the store's clock jumps and the journal is late."""

Place = tuple[str, str]
"""Cluster and bundle, or cluster and namespace."""
_Held = tuple[Host, str]


class Violation(AssertionError):
    """A broken rule, its time, and the changes that led to it."""


@dataclass(slots=True)
class _Bundle:
    """The accepted changes of one bundle."""

    highest: Epoch = NO_EPOCH
    epochs: dict[Epoch, Record] = field(default_factory=dict)
    changes: list[Change] = field(default_factory=list)
    shown: tuple[Epoch, int] = (NO_EPOCH, 0)
    """The highest epoch by which a process served, and its session."""


class Oracle:
    """Learns every change and everything that may be served; ``check`` raises Violation."""

    def __init__(self, now: Callable[[], float], *, in_time: bool = False) -> None:
        """``in_time``: the journal is never late, and its clock does not step."""
        self._now = now
        self._kinds = frozenset(ViolationKind) - NOTES if in_time else TIMELESS
        self.may_lose = False
        """Whether a store may have lost changes that it had accepted."""
        self.audit = Audit()
        self.transitions = 0
        self.events: Counter[str] = Counter()
        self._bundles: defaultdict[Place, _Bundle] = defaultdict(_Bundle)
        self._held: defaultdict[Place, dict[_Held, HashRange]] = defaultdict(dict)
        """By namespace: the bundles that processes hold, leased or not."""
        self._suspects: set[tuple[_Held, _Held]] = set()
        """Pairs that overlap: at most one of each is served."""
        self._unshown: dict[_Held, Epoch] = {}
        """Held bundles that were not served since."""
        self._reshaped: set[Place] = set()
        """Namespaces in which bundles were added or removed."""

    # Like `simulation.ownership.host.Watcher`

    def begins(self, host: Host, bundle: str, epoch: Epoch) -> None:
        self._unshown[host, bundle] = epoch
        beside = self._held[host.cluster, namespace_of(bundle)]
        held = host, bundle
        if held in beside:
            return
        low, high = span = span_of(bundle)[1]
        for other, (begin, end) in beside.items():
            if begin < high and low < end and other[0] is not host:
                self._suspects.add((held, other))
        beside[held] = span

    def ends(self, host: Host, bundle: str | None) -> None:
        if bundle is not None:
            self._held[host.cluster, namespace_of(bundle)].pop((host, bundle), None)
            self._unshown.pop((host, bundle), None)
            return
        for (cluster, _), beside in self._held.items():
            if cluster == host.cluster:
                for held in [held for held in beside if held[0] is host]:
                    del beside[held]
        for held in [held for held in self._unshown if held[0] is host]:
            del self._unshown[held]

    # Accepted changes

    def accepted(self, cluster: str, change: Change) -> None:
        """Note that a server wrote a record."""
        place, epoch = (cluster, change.bundle), change.record.epoch
        known = self._bundles[place]
        known.changes.append(change)
        del known.changes[:-_TOLD]
        given = known.epochs.setdefault(epoch, change.record)
        if given != change.record:
            self.fail(f"epoch {epoch} is given twice: {given}", place)
        if change.event is not Event.RESTORE:
            self.transitions += 1
            self.events[f"{change.event} to {change.record.state}"] += 1
            if epoch <= known.highest:
                self.fail(f"epoch {epoch} of {change.bundle} is not new", place)
        known.highest = max(known.highest, epoch)
        if change.event in (Event.RETIRE, Event.RESTORE):
            self._reshaped.add((cluster, namespace_of(change.bundle)))

    # Checks

    def check(self, master: MemoryServer) -> None:
        """Check what has changed."""
        for pair in list(self._suspects):
            self._judge(*pair)
        for held, epoch in list(self._unshown.items()):
            self._show(held, epoch)
        for place in list(self._reshaped):
            self._tiles(master, place)

    def check_all(self, hosts: Iterable[Host], master: MemoryServer) -> None:
        """Check everything, without using the changes that were noted."""
        serving: defaultdict[Place, list[tuple[HashRange, str, str]]] = defaultdict(list)
        for host in hosts:
            for bundle in host.serving():
                namespace, span = span_of(bundle)
                serving[host.cluster, namespace].append(
                    (span, f"{host.name} {host.session}", bundle)
                )
        for (cluster, _), served in serving.items():
            for (one, by, bundle), (other, others, overlap) in pairwise(sorted(served)):
                if other.low < one.high and by != others:
                    self.fail(
                        f"{by} serves {bundle}, {others} serves {overlap}",
                        (cluster, bundle),
                        (cluster, overlap),
                    )
        self.check(master)

    def _judge(self, one: _Held, other: _Held) -> None:
        for host, bundle in (one, other):
            if (host, bundle) not in self._held[host.cluster, namespace_of(bundle)]:
                self._suspects.discard((one, other))
                return
        if all(host.serves(bundle) for host, bundle in (one, other)):
            (host, bundle), (other_host, overlap) = one, other
            self.fail(
                f"{host.name} {host.session} serves {bundle}, "
                f"{other_host.name} {other_host.session} serves {overlap}",
                (host.cluster, bundle),
                *(() if bundle == overlap else ((host.cluster, overlap),)),
            )

    def _show(self, held: _Held, epoch: Epoch) -> None:
        """Check the token that the storage below sees first, when clients are served."""
        host, bundle = held
        if not host.serves(bundle):
            return
        del self._unshown[held]
        known = self._bundles[host.cluster, bundle]
        highest, session = known.shown
        if epoch < highest or (epoch == highest and session != host.session):
            self.fail(
                f"{host.name} {host.session} serves {bundle} by {epoch}, "
                f"and {highest} was shown by {session}",
                (host.cluster, bundle),
            )
        known.shown = epoch, host.session

    def _tiles(self, master: MemoryServer, place: Place) -> None:
        cluster, namespace = place
        if not master.is_open(cluster):
            return
        self._reshaped.discard(place)
        records = master.of(cluster).records
        standing = [
            bundle
            for bundle, record in records.items()
            if record.state is not State.DELETED and namespace_of(bundle) == namespace
        ]
        if found := flaws(standing):
            self.fail(f"{namespace} does not tile: {found}", (cluster, standing[0]))

    def reshape(self, places: Iterable[Place]) -> None:
        """Check that the records of these namespaces tile."""
        self._reshaped.update(places)

    def audited(self, until_ms: int) -> None:
        kinds = self._kinds if self.may_lose else self._kinds | {ViolationKind.LOST}
        found = [each for each in self.audit.settle(until_ms) if each.kind in kinds]
        if found:
            self.fail(f"the auditor finds {found[0]}", (found[0].cluster, found[0].bundle))

    def served_by_owners(
        self, cluster: str, hosts: Iterable[Host], records: Mapping[str, Record]
    ) -> None:
        """Check that every bundle is in service again."""
        served = {
            bundle: host.name
            for host in hosts
            if host.cluster == cluster
            for bundle in host.serving()
        }
        for bundle, record in records.items():
            if record.state is not State.DELETED and served.get(bundle) != record.owner:
                who = served.get(bundle)
                self.fail(f"{bundle} is served by {who}, not as {record}", (cluster, bundle))

    def fail(self, what: str, *places: Place) -> None:
        stories = [f"  {change}" for place in places for change in self._bundles[place].changes]
        raise Violation("\n".join([f"at {self._now():.3f} s: {what}", *stories]))
