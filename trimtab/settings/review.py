"""Settings of plan review, the shadow, and what is kept for replays and explanations."""

from __future__ import annotations

from dataclasses import dataclass

from trimtab.settings.setting import setting
from trimtab.settings.units import DAY
from trimtab.settings.words import NO_SHADOW, PLACEMENT, SHEDDING, UNDO


@dataclass(frozen=True, slots=True)
class LedgerSettings:
    """The ledger: compares the predicted result of moves with the realised one."""

    enabled: bool = setting(
        True,
        "",
        None,
        "Off: the error of predictions is unknown, they do not learn from it, and the breaker "
        "sees nothing.",
    )
    settle: float = setting(
        120.0,
        "s",
        (1.0, DAY),
        "From a plan's last landing until it is judged, by the reports of the second half; two "
        "reports of a broker at least. Short: clients that reconnect are counted as load; long: "
        "what happens otherwise is blamed on the plan.",
    )


@dataclass(frozen=True, slots=True)
class BreakerSettings:
    """The breaker: when a plan counts as harmful, and what is done then."""

    enabled: bool = setting(
        True,
        "",
        None,
        "Off: a strategy goes on however its plans turn out. Turning it off ends a freeze.",
    )
    freeze: float = setting(
        600.0,
        "s",
        (0.0, 30 * DAY),
        "How long no strategy is asked after a plan that did harm; repairs, drains and splits "
        "go on. Short: the same plan is tried again; long: a skew stays for that time.",
    )
    worse: float = setting(
        0.02,
        "fraction",
        (0.0, 1.0),
        "By how much a plan may widen the range of usage, or what chance explains if that is more. "
        "Low: trips on trifles; high: harm is found late.",
    )
    slow_factor: float = setting(
        3.0,
        "times",
        (1.0, 1e6),
        "How many times the usual a plan's hand-overs may take, medians of both, and half a second "
        "more at least. Low: trips on a busy minute; high: clients wait.",
    )
    failed: float = setting(
        0.3,
        "fraction",
        (0.0, 1.0),
        "Of a plan's moves, three at least, may end elsewhere than planned while both brokers are "
        "there. Low: trips on one bad broker; high: moves are tried that fail.",
    )
    undo: str = setting(
        "propose",
        "",
        UNDO,
        "The inverse of a plan that did harm. off: not told; propose: told with the round; issue: "
        "done at once where the range got wider, which costs clients another hand-over each.",
    )


@dataclass(frozen=True, slots=True)
class ShadowSettings:
    """The shadow: a second strategy whose moves are only counted."""

    shedding: str = setting(
        NO_SHADOW,
        "",
        (NO_SHADOW, *SHEDDING),
        "The strategy that is compared with round.shedding, with all its settings; none: rounds "
        "cost half as much and nothing is compared.",
    )
    placement: str = setting(
        "least-predicted-usage",
        "",
        PLACEMENT,
        "Its placement; avg only together with avg shedding.",
    )


@dataclass(frozen=True, slots=True)
class ReplaySettings:
    """The exports that later replays start from."""

    export_interval: float = setting(
        900.0,
        "s",
        (0.0, DAY),
        "Between two exports of all that is held of a cluster; 0: none, and a replay needs the "
        "topics' beginning. Short: many bytes on trimtab.state; long: a replay runs as much longer "
        "before the span it was asked for.",
    )


@dataclass(frozen=True, slots=True)
class ExplainSettings:
    """The explanations that Redis keeps for `trimtab why`."""

    rounds: int = setting(
        100,
        "rounds",
        (0, 1000),
        "How many of the last rounds are kept; 0: none, and every answer takes a replay. Low: last "
        "night's move is no longer there; high: memory of Redis, 1.5 kB for each of its subjects.",
    )
    subjects: int = setting(
        200,
        "subjects",
        (0, 10_000),
        "Bundles and brokers that a round explains at most; 0: none. Low: some moves have only "
        "their sentence; high: rounds with many moves take longer and more memory of Redis, which "
        "serves no other client for 12 ms per thousand while it stores them.",
    )
