"""Which job's watcher was heard last: what an older one says is out of date.

A driver that was stopped, or cut off from Kafka, publishes late what it had to say of leases and
doubts. Its successor has said what is true by then, and says it once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

LISTEN_MS: Final = 86_400_000
"""After the newest job's last word older ones are ignored for so long. Shorter: a driver that slept
is believed; longer: a job whose claims were lost with everything else is not heard for as long."""


@dataclass(frozen=True, slots=True)
class Watcher:
    """The newest one; replaced, never changed."""

    generation: int = 0
    said_ms: int = 0
    """When it last said something, by Kafka's clock."""

    def is_newer_than(self, generation: int, at_ms: int) -> bool:
        """Whether what a job of ``generation`` (0: unknown) said at ``at_ms`` is out of date."""
        return 0 < generation < self.generation and at_ms - self.said_ms < LISTEN_MS

    def heard(self, generation: int, at_ms: int) -> Watcher:
        """The watcher after something was said that is not out of date."""
        return Watcher(generation, at_ms) if generation else self


NO_WATCHER: Final = Watcher()
