"""What is known of what each bundle takes of each resource, where several resources compete.

need of a bundle = slopes * its traffic + own
slopes  = what traffic takes (`trimtab.load_model.resources.slopes`)
own     = what traffic does not tell (`trimtab.load_model.resources.learn_needs`)
doubt   = the standard deviation of own: at first what the brokers' residuals differ by, divided
          over their bundles; a move makes it smaller
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np

from trimtab.arrays import Floats, Ints
from trimtab.load_model.estimating.estimates import Keys
from trimtab.load_model.estimating.leap_record import LeapRecord
from trimtab.load_model.resources.slopes import PRIOR
from trimtab.view import Bundles

TINY: Final = 1e-30
"""Floor of variances and means that are divided by."""


@dataclass(frozen=True, slots=True, eq=False)
class Needs:
    """What is known; columns are ascending by ``keys``, resources are `trimtab.load.COUNTED` in the
    units of their limits."""

    keys: Keys = field(default_factory=lambda: np.zeros(0, np.uint64))
    brokers: tuple[str, ...] = ()
    host: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    """(m,) row in ``brokers``."""
    own: Floats = field(default_factory=lambda: np.zeros((4, 0)))
    """(4, m) need that traffic does not tell."""
    unsure: Floats = field(default_factory=lambda: np.zeros((4, 0)))
    """(4, m) variance of ``own``, in parts of ``spread``."""
    loose: Floats = field(default_factory=lambda: np.zeros((4, 0)))
    """(4, m) the part of it that the bundles on its broker do not bind by their sum."""
    base: Floats = field(default_factory=lambda: np.zeros((4, 0)))
    """(4, n) what each broker takes by itself; it too is learned from what sums are off."""
    moments: Floats = field(default_factory=lambda: np.zeros((9, 9)))
    """Fading sums of the products of 1, traffic and resources of brokers."""
    slopes: Floats = field(default_factory=lambda: np.zeros((4, 4)))
    """By resource and row of traffic."""
    spread: Floats = field(default_factory=lambda: np.zeros(4))
    """(4,) variance of ``own`` between bundles."""
    noise: Floats = field(default_factory=lambda: np.zeros(4))
    """(4,) variance of a report around what is expected of it."""
    idle: Floats = field(default_factory=lambda: np.ones(4))
    """(4,) the least average use of an idle broker of late, in parts of its limit."""
    untold: float = 1.0
    """The part of the prior's standard deviation that is left on whether messages or bytes cost: 1
    where brokers carry the same mixture."""
    reported_ms: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    """(n,) the last report counted."""
    changed_ms: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    """(n,) the last time at which bundles came or went."""
    spells: LeapRecord = field(default_factory=LeapRecord)
    """Brokers that are busier than expected, or less busy."""

    def __post_init__(self) -> None:
        # State from before changes were kept has none.
        if len(self.changed_ms) != len(self.brokers):
            object.__setattr__(self, "changed_ms", np.zeros(len(self.brokers), np.int64))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Needs) and all(
            np.array_equal(getattr(self, name), getattr(other, name))
            for name in ("keys", "brokers", "host", "own", "unsure", "loose", "moments", "noise")
        )


def weights_of(bundles: Bundles) -> Floats:
    """(m,) how large each bundle's own need may be, relative to the mean.

    It grows with the square root of the traffic: a bundle with little traffic may still need much.
    """
    root = np.sqrt(PRIOR @ bundles.long)
    weights: Floats = root / max(float(root.mean()) if root.size else 0.0, TINY)
    return weights
