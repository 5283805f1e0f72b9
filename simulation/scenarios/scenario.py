"""The settings of a scenario: a fleet, its initial distribution of load, and its events.

Cycle 0 is the first in which strategies may act; those of the warm-up come before it. Usage is a
fraction of a broker's processor; load is counted in brokers of the first hardware class: 1 keeps
one of them fully busy. `simulation.scenarios.reading` reads a scenario by its settings' names.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from trimtab.settings.setting import setting

SIZES: Final = ("log-normal", "bimodal")
_MANY: Final = 10_000_000
DAY_S: Final = 86_400.0


@dataclass(frozen=True, slots=True)
class Start:
    """The distribution of load before the first cycle."""

    brokers: int = setting(
        0, "brokers", (0, _MANY), "That many carry everything, the others join; 0: all carry."
    )
    spread: float = setting(
        0.0,
        "fraction",
        (0.0, 1.0),
        "Usage of the hottest less that of the coldest; 0: as even as the bundles allow.",
    )
    joining: int = setting(0, "cycle", (0, _MANY), "When the others join.")
    every: int = setting(0, "cycles", (0, _MANY), "Between one and the next; 0: all at once.")


@dataclass(frozen=True, slots=True)
class Delay:
    """How late a round sees the world."""

    low: float = setting(0.0, "s", (0.0, DAY_S), "Age of the youngest report a round sees.")
    high: float = setting(0.0, "s", (0.0, DAY_S), "Age of the oldest.")
    flight_low: float = setting(0.0, "s", (0.0, DAY_S), "Of the shortest move.")
    flight_high: float = setting(0.0, "s", (0.0, DAY_S), "Of the longest; 0: done with the round.")


@dataclass(frozen=True, slots=True)
class LoadStep:
    """Some bundles get busier at once, permanently."""

    share: float = setting(0.0, "fraction", (0.0, 1.0), "Of the bundles, one at least; 0: none.")
    factor: float = setting(6.0, "times", (0.0, 1000.0), "Their load after, in loads before.")
    cycle: int = setting(0, "cycle", (0, _MANY), "When.")


@dataclass(frozen=True, slots=True)
class Wave:
    """Load follows the time of day."""

    amplitude: float = setting(0.0, "fraction", (0.0, 1.0), "Of the mean, up and down.")
    period: float = setting(DAY_S, "s", (1.0, 365 * DAY_S), "From peak to peak.")
    in_phase: bool = setting(
        False, "", None, "On: all namespaces peak together. Off: each at a time of its own."
    )
    opposed: bool = setting(
        False, "", None, "On: every other namespace peaks when the others are quietest."
    )
    steep: float = setting(
        1.0, "times", (1.0, 1000.0), "1: a sine; more: day and night, with ramps that much shorter."
    )


@dataclass(frozen=True, slots=True)
class Wander:
    """Each bundle's load wanders by itself: true load x e^(sigma N - sigma²/2)."""

    sigma: float = setting(0.0, "", (0.0, 5.0), "Of the logarithm; 0: it does not wander.")
    memory: float = setting(
        0.95, "", (0.0, 0.999999), "Correlation of one cycle's N with the next one's."
    )


@dataclass(frozen=True, slots=True)
class Burst:
    """Each bundle's load bursts now and then, independently of the others."""

    a_day: float = setting(0.0, "bursts", (0.0, 86_400.0), "Of a bundle, on average; 0: none.")
    factor: float = setting(3.0, "times", (0.0, 1000.0), "Load in a burst, in loads before.")
    lasting: float = setting(600.0, "s", (1.0, DAY_S), "Mean; exponential.")
    cycle: int = setting(
        -_MANY,
        "cycle",
        (-_MANY, _MANY),
        "When the first may begin; below 0: in the warm-up.",
    )


@dataclass(frozen=True, slots=True)
class Backup:
    """One broker after the other is busy by itself, whatever it carries."""

    share: float = setting(0.0, "fraction", (0.0, 1.0), "Of its processor; 0: none is.")
    every: int = setting(12, "cycles", (1, _MANY), "Between one and the next.")
    lasting: int = setting(12, "cycles", (1, _MANY), "Of each.")
    cycle: int = setting(0, "cycle", (0, _MANY), "When the first begins.")


@dataclass(frozen=True, slots=True)
class Posting:
    """How reports reach the job; a silent broker is out of view (`trimtab.state.pace`)."""

    every: float = setting(0.0, "s", (0.0, DAY_S), "Between a broker's reports; 0: a cycle.")
    lost: float = setting(0.0, "fraction", (0.0, 0.99), "Of the reports, at random.")
    late: float = setting(0.0, "s", (0.0, DAY_S), "Of the latest; the others are less late.")

    @property
    def used(self) -> bool:
        """Whether reports are posted, rather than known in each cycle as they are made."""
        return bool(self.every or self.lost or self.late)


@dataclass(frozen=True, slots=True)
class Need:
    """Which resources bundles take (`simulation.scenarios.world.needs`)."""

    most: str = setting(
        "",
        "",
        None,
        "What kinds of bundles need most, dealt at random: processor:network; empty: all need the "
        "processor, and the links in proportion.",
    )
    others: float = setting(
        0.1, "times", (0.0, 1.0), "What they take of the other resources, in parts of that."
    )
    told: bool = setting(
        True, "", None, "On: messages follow the processor. Off: they follow bytes, nothing tells."
    )
    by_namespace: bool = setting(
        False, "", None, "On: all bundles of a namespace are of one kind. Off: dealt at random."
    )


@dataclass(frozen=True, slots=True)
class Hot:
    """One bundle becomes hot; its load is a share of a broker of the first class."""

    bundle: float = setting(0.0, "fraction", (0.0, 100.0), "In topics alike; 0: none.")
    topic: float = setting(0.0, "fraction", (0.0, 100.0), "In one topic; 0: none.")
    cycle: int = setting(0, "cycle", (0, _MANY), "When.")


@dataclass(frozen=True, slots=True)
class Crash:
    """Brokers crash without notice."""

    brokers: int = setting(0, "brokers", (0, _MANY), "Of any, at once.")
    domains: int = setting(0, "failure domains", (0, _MANY), "All brokers of so many.")
    cycle: int = setting(0, "cycle", (0, _MANY), "When.")
    returning: int = setting(0, "cycles", (0, _MANY), "Until they are back, empty; 0: never.")


@dataclass(frozen=True, slots=True)
class Restart:
    """Each broker in turn stops and comes back empty."""

    every: int = setting(0, "cycles", (0, _MANY), "Between one and the next; 0: none.")
    brokers: int = setting(0, "brokers", (0, _MANY), "How many; 0: all.")
    down: int = setting(1, "cycles", (0, _MANY), "Until it is back; 0: it never is.")
    drained: bool = setting(True, "", None, "On: it is emptied in the cycle before.")
    cycle: int = setting(0, "cycle", (0, _MANY), "When the first is stopped.")


@dataclass(frozen=True, slots=True)
class Affinity:
    """Anti-affinity groups of namespaces that have one bundle each."""

    groups: int = setting(0, "groups", (0, _MANY), "How many.")
    members: int = setting(5, "namespaces", (2, _MANY), "Of each.")
    violations: int = setting(
        0, "namespaces", (0, _MANY), "That start on a broker with another of their group."
    )


@dataclass(frozen=True, slots=True)
class Scenario:
    """A scenario: a seed fixes its history for every strategy, apart from the moves."""

    about: str = setting("", "", None, "A line for people.")
    brokers: int = setting(30, "brokers", (2, _MANY), "In the end, but for those that crash.")
    bundles: int = setting(1200, "bundles", (2, _MANY), "At the start.")
    namespaces: int = setting(30, "namespaces", (1, _MANY), "Of equal size, beside the groups.")
    topics: int = setting(10, "topics", (1, 1_000_000), "Of a bundle, all alike.")
    mean: float = setting(0.45, "fraction", (0.001, 10.0), "All load over all capacity.")
    sizes: str = setting("log-normal", "", SIZES, "How the bundles' loads are drawn.")
    sigma: float = setting(1.0, "", (0.0, 5.0), "Of the logarithm of a log-normal load.")
    large_share: float = setting(0.1, "fraction", (0.0, 1.0), "Of bimodal bundles.")
    large_ratio: float = setting(20.0, "times", (1.0, 1e6), "Load of a large one in small ones.")
    hardware: str = setting(
        "1", "", None, "Capacities of the classes, dealt in turn: 1:4 gives every other broker 4."
    )
    domains: int = setting(0, "failure domains", (0, _MANY), "Brokers in turn; 0: not known.")
    noise: float = setting(
        0.0, "", (0.0, 5.0), "Sigma: each cycle a bundle reports its load x e^(sigma N - sigma²/2)."
    )
    noise_memory: float = setting(
        0.0, "", (0.0, 0.999999), "Correlation of one cycle's N with the next one's (AR(1))."
    )
    warm_up: int = setting(0, "cycles", (0, _MANY), "Of history, in which nothing is carried out.")
    observed: bool = setting(
        True,
        "",
        None,
        "On: in the warm-up strategies are asked, as while observing only. Off: rounds are off.",
    )
    cycles: int = setting(240, "cycles", (1, _MANY), "In which strategies act.")
    seconds: float = setting(60.0, "s", (0.001, DAY_S), "Of a cycle: a report and a round each.")
    split: bool = setting(False, "", None, "Whether bundles may be divided.")
    evenly: bool = setting(
        False,
        "",
        None,
        "Off: placement does not count bundles of a namespace before it asks for load, which hides "
        "what a placement strategy does.",
    )
    limit: float = setting(
        0.85, "fraction", (0.0, 100.0), "Usage above which a broker counts as overloaded."
    )
    seed: int = setting(1, "", (0, 2**62), "Everything random depends on it.")
    start: Start = field(default_factory=Start)
    delay: Delay = field(default_factory=Delay)
    step: LoadStep = field(default_factory=LoadStep)
    wave: Wave = field(default_factory=Wave)
    hot: Hot = field(default_factory=Hot)
    crash: Crash = field(default_factory=Crash)
    restart: Restart = field(default_factory=Restart)
    affinity: Affinity = field(default_factory=Affinity)
    need: Need = field(default_factory=Need)
    wander: Wander = field(default_factory=Wander)
    burst: Burst = field(default_factory=Burst)
    backup: Backup = field(default_factory=Backup)
    reports: Posting = field(default_factory=Posting)

    @property
    def classes(self) -> tuple[float, ...]:
        """Capacity of each hardware class."""
        return tuple(float(part) for part in self.hardware.split(":"))

    @property
    def kinds(self) -> tuple[str, ...]:
        """What each kind of bundle needs most; empty if all are alike."""
        return tuple(self.need.most.split(":")) if self.need.most else ()
