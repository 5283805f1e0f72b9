"""The predicted fleet: the usage of every broker, and what each bundle adds to it.

usage(broker) = usage that its traffic does not explain (`trimtab.load_model.traffic_cost`)
                + gain(broker) * sum of sizes of the bundles that will be there after everything in
                flight has landed
size          = a bundle's average share of the fleet's traffic
gain          = the fleet's traffic * cost of traffic on that kind of broker
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from trimtab.arrays import Bools, Floats, Ints
from trimtab.load_model.resources.takes import Takes


@dataclass(frozen=True, slots=True, eq=False)
class Fleet:
    """n brokers and m bundles, by the rows of the view."""

    usage: Floats
    """(n,) predicted usage, a fraction."""
    gain: Floats
    """(n,) usage that a bundle of size 1 adds; above 0."""
    size: Floats
    """(m,) share of the fleet's traffic."""
    where: Ints
    """(m,) the broker row of each bundle after moves in flight have landed."""
    movable: Bools
    variance: Floats
    """(n,) variance of ``usage`` by chance."""
    hidden: Floats
    """(n,) by how much ``usage`` may be too large because a burst began before the fleet was known;
    0 if none goes on (`trimtab.load_model.estimating.excursions`)."""
    whole: float
    """Bytes/s of a bundle of size 1."""
    struck: int
    """How many bundles have just leapt together, and are believed; 0 without an event."""
    just_planned: bool = False
    """Whether the cool-down of the last plan lasts."""
    sure: float = 1.0
    """The part of the brokers' differences that is no noise, as far as first reports tell
    (`trimtab.load_model.first_reports`); 1 once noise is known."""
    limit: float = 0.0
    """Usage below which brokers are to be brought whose bursts may pass, or that first reports show
    near overload; 0 if all brokers are below it."""
    near_overload: float = math.inf
    """Usage that is near overload."""
    passing: int = 0
    """Bundles that leapt and count with their size before, as leaps of this fleet pass."""
    resting: int = 0
    """Namespaces whose load clearly fell and may come back: brokers count between their usage and
    that before."""
    growing: bool = False
    """Whether it carries more than it did of late at its highest, in a fleet whose leaps last
    (`trimtab.load_model.falls`)."""
    busy: int = 0
    """Brokers that are busier than their bundles explain, or less busy, and count as before, as
    that may pass."""
    as_reported: int = 0
    """Brokers that count as they report, as what is known of their bundles clearly says otherwise
    (`trimtab.load_model.reported_use`)."""
    filling: bool = False
    """Whether a large part of the brokers has just come."""
    takes: Takes | None = None
    """What bundles take of each resource, where several compete; ``usage`` is then that of each
    broker's busiest. None where one resource rules all brokers."""

    @property
    def ready(self) -> bool:
        """Whether there may be a plan: something is ``sure``, and the fleet is not ``filling``."""
        return self.sure > 0 and not self.filling

    @property
    def on_first_reports(self) -> bool:
        """Whether no bundle has been reported twice yet: nothing is known of noise."""
        return self.sure < 1
