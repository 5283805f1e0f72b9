"""The settings of an agent, each with its default."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class AgentSettings:
    """The settings of one broker's agent; all times in seconds."""

    cluster: str
    broker: str
    session: int
    """The broker's start, epoch milliseconds: its reports' ``start_timestamp``."""
    report_interval: float = 5.0
    """Pulsar's shortest. Longer: a hot broker is noticed late; shorter: more work everywhere."""
    report_offset: float = 0.0
    """Delay of the first report: a fleet started at once should not report at once."""
    lease: float = 10.0
    """Longer: a dead broker's bundles wait; shorter: a pause of the process costs its bundles."""
    lease_margin: float = 1.0
    """Serving stops here this long before the lease ends in Redis: for drift between the clocks."""
    longest_wait: float = 0.5
    """Longest single wait for commands; must stay below the Redis client's timeout."""
    look_every: float = 60.0
    """Between two looks at all of its records. Longer: a bundle whose command was lost waits;
    shorter: more reading."""
    forget_every: float = 3_600.0
    """Time between two looks for old records, 500 at a time. Longer: the file of a broker that gets
    many bundles grows; shorter: more reading."""
    urls_every: float = 3_600.0
    """Time between two writes of the broker's service URLs, which are kept for a day; changed ones
    are written at once."""
    state: Path | None = None
    """File that keeps the records seen; without one a restart forgets them."""
