"""The estimate of each bundle: its share of the fleet's traffic, and how certain that is."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trimtab.arrays import Bools, Counts, Floats, Ints, same_columns
from trimtab.load_model.estimating.lags import find_believed_part, widen
from trimtab.load_model.estimating.noise_memory import MOST, remaining, true_variance
from trimtab.load_model.estimating.outlying import FAR, Outlying, counted_samples
from trimtab.load_model.odds import DRIFT

Keys = NDArray[np.uint64]

_SETTLED: Final = 10.0
"""Samples for which the noise of a bundle that leapt does not count. Lower: a plan for the leap
waits; higher: noise is acted on."""
JUST: Final = 7.0
"""Samples for which leaps are one event, in which the target alone counts. Lower: a plan for it
waits; higher: noise is acted on."""
JOINED: Final = 4.0
"""Samples for which a leap lowers the bound for others. Lower: slow reporters miss the event;
higher: noise long after an event counts as a level shift."""
UNKNOWN: Final = 0.25
"""Variance of a sample's logarithm while no bundle has been reported twice, and the most that it is
taken to be before so much was seen: a deviation of 0.5. Lower: a start acts on noise; higher: an
uneven fleet waits for its second reports, or for hours."""
_TINY: Final = 1e-12
"""A share of all traffic too small to divide by."""


def _none() -> Floats:
    return np.zeros(0)


@dataclass(frozen=True, slots=True, eq=False)
class Estimates:
    """(m,) columns of estimates, ascending by ``keys`` (`trimtab.names.identities`)."""

    keys: Keys = field(default_factory=lambda: np.zeros(0, np.uint64))
    at_ms: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    """When the report of the newest sample was appended."""
    sample: Floats = field(default_factory=_none)
    """The newest sample, as reported."""
    level: Floats = field(default_factory=_none)
    """Average share of the fleet's traffic."""
    weight: Floats = field(default_factory=_none)
    """Sum of the samples' weights in ``level``."""
    squares: Floats = field(default_factory=_none)
    """Sum of the squared weights."""
    variance: Floats = field(default_factory=_none)
    """Variance of a sample's logarithm, pooled; 0 before the second sample."""
    seen: Floats = field(default_factory=_none)
    """Number of residuals in ``variance``."""
    up: Floats = field(default_factory=_none)
    down: Floats = field(default_factory=_none)
    rise: Floats = field(default_factory=_none)
    """Sum of the samples since ``up`` was zero."""
    rising: Floats = field(default_factory=_none)
    """Number of the samples since ``up`` was zero."""
    fall: Floats = field(default_factory=_none)
    falling: Floats = field(default_factory=_none)
    """``fall`` and ``falling`` are the same for ``down``."""
    age: Floats = field(default_factory=_none)
    """Samples since its last leap, a large level shift unlike those of a wave; infinite if there
    was none."""
    last: Floats = field(default_factory=_none)
    """The newest sample as a share, without what all bundles' samples had in common."""
    moved: Floats = field(default_factory=_none)
    """Half the mean square of the change of a sample's logarithm to the next, pooled."""
    memory: Floats = field(default_factory=_none)
    """Correlation of the noise of a sample with that of the next
    (`trimtab.load_model.estimating.noise_memory`)."""
    outliers: Floats = field(default_factory=_none)
    """The part of the samples that chance hardly explains, of those of a normal distribution."""
    behind: Floats = field(default_factory=_none)
    """What samples have beyond ``level`` on average, in parts of it."""
    growing: Floats = field(default_factory=_none)
    """The part of ``behind`` that counts, as noise does not explain it."""
    first: Floats = field(default_factory=_none)
    """Share in the first sample of a young fleet; below 0 if a leap since then has just been found,
    and 0 once it is kept no longer (`trimtab.load_model.estimating.early_leaps`)."""
    host: Keys = field(default_factory=lambda: np.zeros(0, np.uint64))
    """The broker that reported the newest sample (`trimtab.load_model.unreported`); 0 if that is
    not known."""

    def __post_init__(self) -> None:
        # State from before ages, memories, first samples or hosts were kept has none.
        if len(self.age) != len(self.keys):
            object.__setattr__(self, "age", np.full(len(self.keys), np.inf))
        if len(self.memory) != len(self.keys):
            self._begin_memories()
        if len(self.growing) != len(self.keys):
            object.__setattr__(self, "behind", np.zeros(len(self.keys)))
            object.__setattr__(self, "growing", np.zeros(len(self.keys)))
        if len(self.first) != len(self.keys):
            object.__setattr__(self, "first", np.zeros(len(self.keys)))
        if len(self.host) != len(self.keys):
            object.__setattr__(self, "host", np.zeros(len(self.keys), np.uint64))

    def __eq__(self, other: object) -> bool:
        return same_columns(self, other)

    def _begin_memories(self) -> None:
        """Begin as after one residual: what is known of the noise says nothing of its memory."""
        begun = {
            "last": self.level,
            "moved": self.variance,
            "memory": np.full(len(self.keys), MOST),
            "outliers": np.zeros(len(self.keys)),
            "seen": np.minimum(self.seen, 1.0),
        }
        for name, column in begun.items():
            object.__setattr__(self, name, column)

    @property
    def growth(self) -> Floats:
        """(m,) factor from ``level`` to the load now: what it surely lags behind."""
        growth: Floats = 1.0 + self.growing * self.behind
        return growth

    @property
    def current(self) -> Floats:
        """(m,) share of the fleet's traffic now: the level, with what it surely lags behind."""
        current: Floats = np.minimum(self.level * self.growth, 1.0)
        return current

    @property
    def unsampled(self) -> Bools:
        """(m,) whether the bundle has yet to be sampled."""
        unsampled: Bools = self.weight == 0
        return unsampled

    def silent(self, at: Ints, traffic: Floats) -> Bools:
        """(k,) whether the counters of the bundles in the rows ``at``, which say ``traffic``, do
        not count yet: it was no sample."""
        uncounted = self.unsampled[at] | (self.sample[at] > 0)
        silent: Bools = uncounted & (traffic == 0)
        return silent

    @property
    def known(self) -> bool:
        """Whether any bundle has been reported twice."""
        return bool((self.seen > 0).any())

    @property
    def stepped(self) -> Bools:
        """(m,) whether the bundle leapt a short while ago."""
        return self.age < _SETTLED

    @property
    def leaping(self) -> int:
        """How many bundles leapt so recently that others may be about to."""
        return int(np.count_nonzero(self.age <= JOINED))

    @property
    def far(self) -> Bools:
        """(m,) whether the newest sample is an outlier, as far as the noise is known."""
        apart = np.log(np.maximum(self.last, _TINY) / np.maximum(self.current, _TINY))
        far: Bools = np.abs(apart) > FAR * np.sqrt(self.variance)
        return far & (counted_samples(self.seen) > 0)

    @property
    def outlying(self) -> Outlying:
        """How often the fleet's samples are outliers, without bundles whose level has just shifted
        or may be shifting now."""
        counted = counted_samples(self.seen)
        apart = (self.age <= JUST) | (np.maximum(self.up, self.down) > FAR - DRIFT)
        count = float((self.outliers * counted).sum()) - int(np.count_nonzero(apart))
        return Outlying(len(self.keys), max(count, 0.0), float(counted.sum()))

    @property
    def chance(self) -> Floats:
        """(m,) variance of ``current`` by chance; 0 for a bundle that leapt, which was not chance
        unless outliers are common, or may be."""
        if not self.outlying.rare:
            return self.spread
        chance: Floats = np.where(self.stepped, 0.0, self.spread)
        return chance

    @property
    def spread(self) -> Floats:
        """(m,) variance of ``current``: what lasting noise has not shown yet is taken for no more
        than while nothing is known."""
        spread: Floats = self.level**2 * self._variation * widen(self.growing)
        return spread

    def follow_growth(self) -> Estimates:
        """The estimates with as much of their lag as chance leaves."""
        return replace(self, growing=find_believed_part(self.behind, self._variation))

    @property
    def _variation(self) -> Floats:
        """(m,) variance of ``level``, in parts of its square."""
        true = true_variance(self.variance, self.moved, self.memory)
        true = np.where(self.variance > 0, np.minimum(true, UNKNOWN), UNKNOWN)
        each = np.expm1(np.maximum(true, self.variance))
        variation: Floats = each * remaining(self.memory, self.weight, self.squares)
        return variation


class Samples(NamedTuple):
    """(m,) columns, ascending by ``keys``."""

    keys: Keys
    traffic: Floats
    """Bytes/s."""
    at_ms: Ints
    """When they were reported."""
    namespace: Counts | None = None
    """The row of each bundle's namespace, if namespaces are known."""
    young: Bools | None = None
    """Whether counters may not count yet, and read 0 for that."""
