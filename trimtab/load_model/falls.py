"""Tenants whose load fell and may come back: no broker gives or receives because of them.

high   = what a namespace surely carried of late at its highest; it fades by half in a day, and
         takes hours to double, so that a crowd hardly raises it
fall   = what it carries less than its high, as far as the fleet as a whole carries less than its
         own: where others carry more instead, load has gone elsewhere, and hot brokers are hotter
usage  = of now, or in the proportions before the falls, whichever is nearer to the mean of all
         brokers; but no further off than that a range as wide as is accepted after many plans
         is always seen (`trimtab.load_model.wariness`)

A fleet at the weekend looks uneven: brokers whose tenants rest are colder than others. Whether that
lasts, nothing tells yet. To fill them would be too much once the tenants are back, and meanwhile
the hottest broker is no hotter than it was.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np

from trimtab.arrays import Counts, Floats, same_columns
from trimtab.load_model.caution import count_nearer

_HALF_LIFE_S: Final = 86_400.0
"""Time in which half of a high above what is carried is forgotten. Shorter: a weekend is answered;
longer: a fleet whose tenants are gone for good stays uneven."""
_DOUBLED_S: Final = 6 * 3600.0
"""Time in which a high may double. Shorter: what a crowd caused counts as usual; longer: what a
tenant carries by day is not known by night."""
_YOUNG_S: Final = 1800.0
"""Age of a fleet up to which highs just follow. Shorter: the noise is not known yet, and little
sure; longer: what a crowd caused counts as usual."""
_SURELY: Final = 4.0
"""Standard errors that chance hardly reaches. Lower: the highs of noise look like falls; higher:
what small or noisy tenants carried is forgotten."""
_CLEAR: Final = 1.1
"""Multiple of what a namespace carries that it carried before, from which that is a fall. Lower:
rounding decides; higher: tenants that rest a little make room."""
_TINY: Final = 1e-9
"""Floor of what is divided by."""


class Carried(NamedTuple):
    """(s + 1,) bytes/s that namespaces carry, and last the fleet."""

    average: Floats
    error: Floats
    """Standard deviation of ``average`` by chance."""
    newest: Floats
    """As last reported. An average of shares lags behind: where others grow it is too large."""

    @classmethod
    def summed(
        cls, namespace: Counts, count: int, average: Floats, variance: Floats, newest: Floats
    ) -> Carried:
        """Of (m,) bundles of ``count`` namespaces."""

        def total(column: Floats) -> Floats:
            return np.append(np.bincount(namespace, column, count), column.sum())

        return cls(total(average), np.sqrt(total(variance)), total(newest))

    @property
    def sure(self) -> Floats:
        """What they surely carry; below 0 if nothing is sure."""
        return np.minimum(self.average - _SURELY * self.error, self.newest)


@dataclass(frozen=True, slots=True, eq=False)
class Highs:
    """Namespaces, and what each surely carried of late at its highest, and last the fleet."""

    namespaces: tuple[str, ...] = ()
    carried: Floats = field(default_factory=lambda: np.zeros(1))
    """Bytes/s; 0 while nothing is sure."""
    at_ms: int = 0

    def __eq__(self, other: object) -> bool:
        return same_columns(self, other)

    def of(self, namespaces: tuple[str, ...]) -> Floats:
        """(s + 1,) the highs of these namespaces and the fleet."""
        if namespaces == self.namespaces:
            return self.carried
        *each, fleet = self.carried.tolist()
        known = dict(zip(self.namespaces, each, strict=True))
        return np.array([*(known.get(name, 0.0) for name in namespaces), fleet])


def follow_highs(
    past: Highs, namespaces: tuple[str, ...], carried: Carried, now_ms: int, since_ms: int
) -> Highs:
    """The highs after the namespaces carried so much; the fleet is known ``since_ms``."""
    high, sure, elapsed_s = past.of(namespaces), carried.sure, max(now_ms - past.at_ms, 0) / 1000.0
    young = now_ms - since_ms < 1000 * _YOUNG_S
    most = np.inf if young else high * (1.0 + elapsed_s / _DOUBLED_S)
    risen = np.where(high > 0, np.minimum(sure, most), sure)
    fell = np.maximum(high - carried.average, 0.0)
    kept = 0.0 if young else 0.5 ** (elapsed_s / _HALF_LIFE_S)
    faded = high - fell * (1.0 - kept)
    return Highs(namespaces, np.maximum(risen, faded), now_ms)


def find_falls(highs: Highs, carried: Carried) -> Floats:
    """(s,) what the namespaces carried before they fell, as a multiple of what they carry; 1 where
    nothing fell."""
    now, less = carried.average[:-1], np.maximum(highs.carried - carried.average, 0.0)
    part = less[-1] / max(float(less[:-1].sum()), _TINY)
    falls = 1.0 + min(part, 1.0) * less[:-1] / np.maximum(now, _TINY)
    return np.where(falls < _CLEAR, 1.0, falls)


def is_growing(highs: Highs, carried: Carried) -> bool:
    """Whether the fleet surely carries more than at its highest of late, which `follow_highs` has
    just followed: it grows faster than highs do."""
    # A high is what was surely carried: it was more.
    high = highs.carried[-1] + _SURELY * carried.error[-1]
    return bool(carried.sure[-1] > high)


def leave_out_fallen(usage: Floats, before: Floats, slack: float, near_overload: float) -> Floats:
    """(..., n) usage that counts, by that ``before`` the falls: it is off by ``slack`` at most, and
    what is above ``near_overload`` counts as it is."""
    if not usage.size:
        return usage
    mean = usage.mean(axis=-1, keepdims=True)
    before = before * (mean / np.maximum(before.mean(axis=-1, keepdims=True), _TINY))
    counted = np.clip(count_nearer(usage, before, mean), usage - slack, usage + slack)
    return np.where(usage > near_overload, usage, counted)
