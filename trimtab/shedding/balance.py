"""The balance of a fleet, and the next pair of brokers to balance (Pulsar TransferShedder).

load = average usage; mean and deviation over the brokers with a recent report
underloaded = load below mean * slack, or average traffic below the busiest one's * slack
overloaded  = load above the overload threshold and above mean + target
slack = target / 2, at most a half
"""

from __future__ import annotations

import math

import numpy as np

from trimtab.arrays import THROUGHPUT, USAGE, Bools
from trimtab.reasons import Reason
from trimtab.settings import Settings
from trimtab.view import View


def young(view: View, settings: Settings) -> Bools:
    """(n,) which brokers have a report that is not too old."""
    reported = view.brokers.reported_ms
    age_ms = view.now_ms - reported
    return (reported > 0) & (age_ms <= settings.transfer.report_life * 1000)


class Balance:
    """The brokers by load, taken in pairs from both ends; needs at least one recent report."""

    def __init__(self, view: View, settings: Settings) -> None:
        self._target = settings.transfer.target_deviation
        self._slack = min(0.5, max(0.0, self._target / 2))
        self._limit = settings.round.overloaded_threshold
        load = view.brokers.averages[USAGE]
        self._load: list[float] = load.tolist()
        self._traffic: list[float] = view.brokers.averages[THROUGHPUT].tolist()
        known = np.flatnonzero(view.brokers.reported_ms > 0)
        self._order: list[int] = known[np.argsort(load[known], kind="stable")].tolist()
        self._low, self._high = 0, len(self._order) - 1
        counted = load[young(view, settings)]
        self._count = len(counted)
        # cumsum adds one by one as Pulsar does; sum would add pairwise and differ in the last bit.
        self.mean = float(np.cumsum(counted)[-1]) / self._count
        self._squares = float(np.cumsum(counted * counted)[-1])
        variance = self._variance()
        # With equal loads rounding may make the variance negative; Pulsar's deviation is NaN too.
        self.deviation = math.sqrt(variance) if variance >= 0 else math.nan

    def _variance(self) -> float:
        return self._squares / self._count - self.mean * self.mean

    def broken(self) -> Reason | None:
        """Why the outermost remaining pair is out of balance; None if it is not."""
        idle, busy = self._order[self._low], self._order[self._high]
        if self.deviation > self._target:
            return Reason.OVERLOADED
        if self._load[idle] < self.mean * self._slack:
            return Reason.UNDERLOADED
        if self._traffic[idle] < self._traffic[busy] * self._slack:
            return Reason.UNDERLOADED
        if self._load[busy] > self._limit and self._load[busy] > self.mean + self._target:
            return Reason.OVERLOADED
        return None

    def next_pair(self) -> tuple[int, int, Reason] | None:
        """Rows of the idlest and the busiest remaining broker; each call removes the busiest."""
        if self._low >= self._high:
            return None
        reason = self.broken()
        if reason is None:
            return None
        self._high -= 1
        return self._order[self._low], self._order[self._high + 1], reason

    def share(self, idle: int, busy: int, carried: float) -> float:
        """The part of the busy broker's ``carried`` bytes/s that would make the pair equal."""
        gap = (self._load[busy] - self._load[idle]) / 2
        return _divided(carried * gap, self._load[busy])

    def expect(self, idle: int, busy: int, moved: float, carried: float) -> None:
        """Count ``moved`` bytes/s from the busy to the idle broker, and remove the idle one."""
        high, low = self._load[busy], self._load[idle]
        change = _divided(moved * high, carried)
        left = high - change
        left = 0.0 if left < 0 else left
        self._squares -= high * high + low * low
        self._squares += left * left + (low + change) * (low + change)
        self.deviation = math.sqrt(abs(self._variance()))
        self._low += 1


def _divided(a: float, b: float) -> float:
    """Divide as IEEE 754 does: ``b`` is 0 for an idle broker."""
    if b:
        return a / b
    return math.copysign(math.inf, a) if a else math.nan
