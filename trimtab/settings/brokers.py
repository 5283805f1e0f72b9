"""Settings for brokers that are silent, lost or back again."""

from __future__ import annotations

from dataclasses import dataclass

from trimtab.settings.setting import setting
from trimtab.settings.units import DAY


@dataclass(frozen=True, slots=True)
class DoubtSettings:
    """When the known state of brokers is too doubtful to act on."""

    silent_brokers: float = setting(
        0.5,
        "fraction",
        (0.0, 1.0),
        "Of the known brokers, drained ones apart: with so many silent or lost at once, two at "
        "least, nothing is decided until some are back or said to be drained. Low: a rack that "
        "fails is not repaired; high: when the network fails, all goes to the few that are seen.",
    )
    lost_brokers: float = setting(
        0.2,
        "fraction",
        (0.0, 1.0),
        "With more lost within a minute, two at least, repairs wait for ``delay`` and nothing else "
        "is done. Low: two deaths in a large fleet stop balancing; high: brokers whose leases fail "
        "together are taken apart one by one.",
    )
    delay: float = setting(
        10.0,
        "s",
        (0.0, 3600.0),
        "How long a bundle must have been without an owner, while that is so, to be given another. "
        "Short: a short outage moves bundles twice; long: clients wait.",
    )


@dataclass(frozen=True, slots=True)
class FlappingSettings:
    """How long a broker that returns after a loss gets no bundles; doubles with each loss."""

    first_delay: float = setting(
        10.0,
        "s",
        (0.0, DAY),
        "After the first loss. 0: never held back, so one that fails again and again takes bundles "
        "down each time; long: a restart leaves a broker idle.",
    )
    longest_delay: float = setting(
        600.0,
        "s",
        (0.0, DAY),
        "After many. Short: a broker that flaps for hours is used between its deaths; long: one "
        "that was repaired stays idle.",
    )
    forget: float = setting(
        3600.0,
        "s",
        (0.0, 30 * DAY),
        "Without a loss for so long, the next counts as the first. Short: slow flapping is not "
        "seen; long: restarts days apart add up.",
    )
