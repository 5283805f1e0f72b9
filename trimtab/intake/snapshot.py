"""Operator ①'s state of a broker: its newest report, smoothed resources and bundle averages.

The operator stores and sends the same value, so there is one codec and one source of truth.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Final, cast

import numpy as np

from trimtab.arrays import Bools, Floats, Ints
from trimtab.settings.setting import InvalidSettings, problem_of, setting

SCHEMA: Final = 4
"""Version of a packed Snapshot; a reader migrates from earlier ones."""
READ: Final = (1, 2, 3, SCHEMA)
"""Schemas that are read: 1 was not compressed, 2 by zlib, 3 had no Latest beside it."""


@dataclass(frozen=True, slots=True)
class IntakeSettings:
    """The settings of operator ①; fixed while the job runs."""

    half_life: float = setting(
        1800.0,
        "s",
        (0.001, 86_400.0),
        "Of the average of a broker's resources and traffic, from which the planner learns what "
        "usage traffic does not explain. Short: follows noise; long: such usage is seen late.",
    )
    sample_interval: float = setting(
        60.0,
        "s",
        (0.0, 86_400.0),
        "Between two samples of a bundle's averages; Pulsar refreshes its rates each 60 s. Its "
        "last statistics and counts are taken as often, so that more frequent reports cost little. "
        "Short: averages follow noise; long: they describe a load that is gone.",
    )
    session_silence: float = setting(
        60.0,
        "s",
        (1.0, 86_400.0),
        "An older session is believed again once the newer one was silent so long. Short: late "
        "reports of a stopped broker count; long: one whose clock was set back stays unheard.",
    )

    @classmethod
    def parse(cls, values: Mapping[str, object]) -> IntakeSettings:
        """Defaults with ``values`` over them; raises InvalidSettings with all problems."""
        known = {each.name: each.metadata["setting"] for each in fields(cls)}
        problems = [f"{name}: no such setting" for name in values if name not in known]
        for name in values.keys() & known.keys():
            problem = problem_of(values[name], float, known[name])
            problems += [f"{name}: {problem}"] if problem else []
        if problems:
            raise InvalidSettings(sorted(problems))
        return cls(**{name: float(cast(float, value)) for name, value in values.items()})


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """A broker's m bundles and its own figures; matrices have the view's rows."""

    broker: str
    session: int
    sequence: int
    appended_ms: int
    sampled_ms: int
    start_ms: int
    version: str
    load_manager: str
    persistent: bool
    non_persistent: bool
    topics: int
    listed: int
    resources: Floats
    """(5,) percent as Pulsar computes it; unknown is 0."""
    traffic: Floats
    """(4,) as reported."""
    smoothed: Floats
    """(9,) time-decayed resources and traffic."""
    names: str
    """The bundles, one per line: splitting is cheaper than decoding a list."""
    shown: Bools
    samples: Ints
    """(m,) samples taken, at most the long average's length."""
    news: Bools
    """(m,) whether a bundle's statistics changed since its last sample."""
    stats: Floats
    """(4, m) as last taken."""
    short: Floats
    long: Floats
    counts: Ints
    """(4, m) topics, consumers, producers, cache size."""
    limits: Floats = field(default_factory=lambda: np.zeros(5))
    """(5,) of the resources, as reported; unknown is 0."""
    taken_ms: int = 0
    """When the bundles' statistics and counts were last taken from a report."""

    @property
    def bundles(self) -> tuple[str, ...]:
        return tuple(self.names.split("\n")) if self.names else ()
