"""Move the top bundles of the busiest brokers to the idlest, in pairs (Pulsar TransferShedder).

act if the fleet was out of balance in more than `hits` rounds in a row
for each pair, until the fleet is in balance or max_brokers have shed:
  share = bytes/s that would make the pair's loads equal
  take the busy one's top bundles, smallest first, each that fits into share; leave at least one
  for one that does not fit, look for top bundles of the idle one to swap back:
    enough when the idle one carries no more than the busy one, which is well below its first load
    otherwise go to the next pair
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from trimtab.arrays import THROUGHPUT_IN, THROUGHPUT_OUT, Ints
from trimtab.filters import transferable
from trimtab.filters.request import Projection
from trimtab.plan import ShedWish
from trimtab.reasons import Reason
from trimtab.settings import Settings
from trimtab.shedding.balance import Balance, young
from trimtab.shedding.busiest import traffic
from trimtab.shedding.top_bundles import TopBundles
from trimtab.view import View

_BELOW = 0.75
"""The part of its traffic to which a swap must bring a busy broker down (Pulsar's value)."""


@dataclass(frozen=True, slots=True)
class TransferHistory:
    """For how many rounds in a row the fleet was out of balance."""

    hits: int = 0


def count_hits(history: TransferHistory, settings: Settings) -> Mapping[str, tuple[int, int]]:
    """The rounds out of balance, and the first number of them that makes it act."""
    return {"imbalance": (history.hits, settings.transfer.hits + 1)}


class Skip(StrEnum):
    """Why nothing moves, by Pulsar's names."""

    COOL_DOWN = "CoolDown"
    OUTDATED = "OutDatedData"
    NO_BROKERS = "NoBrokers"
    NO_LOAD_DATA = "NoLoadData"
    HIT_COUNT = "HitCount"
    NO_BUNDLES = "NoBundles"


@dataclass(frozen=True, slots=True)
class ShedOutcome:
    """The shedder's result; mean and deviation (fractions) are None if they were not computed."""

    hits: int
    sheds: tuple[ShedWish, ...] = ()
    skip: Skip | None = None
    mean: float | None = None
    deviation: float | None = None


def shed(
    view: View, history: TransferHistory, settings: Settings
) -> tuple[Sequence[ShedWish], TransferHistory]:
    """Shed bundles of the busiest brokers, and swap others back for them."""
    outcome = judge_balance(view, history, settings, TopBundles(view, settings).of)
    return outcome.sheds, TransferHistory(outcome.hits)


def judge_balance(
    view: View, history: TransferHistory, settings: Settings, top: Callable[[int], Ints]
) -> ShedOutcome:
    """Shed, and say why; ``top`` gives a broker's largest bundles, smallest first."""
    obstacle = _obstacle(view, settings)
    if obstacle is not None:
        return ShedOutcome(history.hits, skip=obstacle)
    balance = Balance(view, settings)
    hits = history.hits + 1 if balance.broken() is not None else 0
    found = ShedOutcome(hits, (), Skip.HIT_COUNT, balance.mean, balance.deviation)
    if hits <= settings.transfer.hits:
        return found
    pairs = _Pairs(view, settings, top)
    pairs.relieve(balance)
    sheds = tuple(pairs.sheds)
    hits, skip = (0, None) if sheds else (hits, pairs.barren)
    return ShedOutcome(hits, sheds, skip, found.mean, found.deviation)


def _obstacle(view: View, settings: Settings) -> Skip | None:
    brokers, fresh = view.brokers, young(view, settings)
    rest_ms = brokers.reported_ms - brokers.relieved_ms
    resting = (brokers.relieved_ms > 0) & (rest_ms < settings.transfer.delay * 1000)
    if (fresh & resting).any():
        return Skip.COOL_DOWN
    known = brokers.reported_ms > 0
    if not fresh.any():
        return Skip.OUTDATED if known.any() else Skip.NO_BROKERS
    return Skip.NO_LOAD_DATA if (brokers.available & ~known).any() else None


class _Pairs:
    """The pairs of one round; `relieve` fills ``sheds`` and ``barren``."""

    def __init__(self, view: View, settings: Settings, top: Callable[[int], Ints]) -> None:
        self._view, self._settings, self._top = view, settings, top
        self._carried: list[float] = traffic(view.brokers, THROUGHPUT_IN).tolist()
        self._projection = Projection(view)
        self._known: dict[tuple[int, int, int], bool] = {}
        self.sheds: list[ShedWish] = []
        self.barren = Skip.HIT_COUNT
        """Why there are no sheds; if there are several reasons, the one that Pulsar would give."""

    def relieve(self, balance: Balance) -> None:
        """Choose the bundles that leave the busy broker of each pair."""
        done = 0
        while done < self._settings.transfer.max_brokers:
            pair = balance.next_pair()
            if pair is None:
                return
            idle, busy, reason = pair
            listed = self._top(busy).tolist()
            if not listed:
                self.barren = Skip.NO_LOAD_DATA
                continue
            carried = self._carried[busy]
            share = balance.share(idle, busy, carried)
            taken, moved = self._take(listed, (idle, busy, reason), share)
            if taken > 0:
                balance.expect(idle, busy, moved, carried)
                done += 1
            elif self.barren is Skip.HIT_COUNT:
                self.barren = Skip.NO_BUNDLES

    def _take(
        self, listed: list[int], pair: tuple[int, int, Reason], share: float
    ) -> tuple[float, float]:
        """Bytes/s taken off the busy broker: gross, and net of what swaps bring back."""
        idle, busy, reason = pair
        limits = self._settings.transfer
        back = self._swappable(idle)
        taken = returned = 0.0
        left = len(listed)
        for row in listed:
            if not self._may_go(row, busy, idle):
                continue
            if left <= 1:
                break
            size = self._size(row)
            if size == 0:
                continue
            swaps: list[int] = []
            if taken - returned + size > share:
                swaps = self._swaps(back, (idle, busy), taken, returned, size)
                if not swaps:
                    break
            self.sheds.append(ShedWish(row, busy, reason, idle if limits.directed else None))
            self.sheds += [ShedWish(other, idle, reason, busy) for other in swaps]
            if limits.credit_swaps:
                returned += sum(map(self._size, swaps))
            taken += size
            left -= 1
        return taken, taken - returned

    def _swappable(self, idle: int) -> Iterator[int]:
        """The idle broker's top bundles; few pairs need one, so they are sought on request."""
        if self._settings.transfer.directed:
            yield from self._top(idle).tolist()

    def _swaps(
        self, back: Iterator[int], pair: tuple[int, int], taken: float, returned: float, size: float
    ) -> list[int]:
        """Bundles of the idle broker that make room for one of ``size``; none if impossible."""
        idle, busy = pair
        most = self._carried[busy]
        there = most - taken + returned - size
        here = self._carried[idle] + taken - returned + size
        swaps = []
        for row in back:
            size = self._size(row)
            if size == 0 or not self._may_return(row, idle, busy):
                continue
            if there + size < most and here - size < most:
                swaps.append(row)
                there += size
                here -= size
                if here <= there and there < _BELOW * most:
                    return swaps
        return []

    def _size(self, row: int) -> float:
        stats = self._view.bundles.stats
        return float(stats[THROUGHPUT_IN, row] + stats[THROUGHPUT_OUT, row])

    def _may_go(self, row: int, source: int, destination: int) -> bool:
        bundles = self._view.bundles
        if not bundles.movable[row] or bundles.owner[row] != source:
            return False
        return self._transferable(row, source, destination)

    def _may_return(self, row: int, source: int, destination: int) -> bool:
        if self._settings.transfer.checked_swaps:
            return self._may_go(row, source, destination)
        return self._transferable(row, source, destination)

    def _transferable(self, row: int, source: int, destination: int) -> bool:
        # Of bundles of a namespace the answer is the same until the round has planned a move.
        asked = (int(self._view.bundles.namespace[row]), source, destination)
        if asked not in self._known:
            self._known[asked] = self._is_transferable(row, source, destination)
        return self._known[asked]

    def _is_transferable(self, row: int, source: int, destination: int) -> bool:
        view, limits = self._view, self._settings.transfer
        namespace = view.bundles.namespaces[view.bundles.namespace[row]]
        if not limits.with_policies and view.policies.binds(namespace):
            return False
        request = self._projection.request(row, source)
        return transferable(request, destination, self._settings)
