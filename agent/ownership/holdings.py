"""What this broker may serve: the bundles that its records grant it, while its lease is valid."""

from __future__ import annotations

import math
from collections.abc import Callable

from trimtab.model import Epoch


class Holdings:
    """Written by the agent's thread, read by the threads that serve clients.

    Those threads take no lock: each call reads one dict and one float.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._epochs: dict[str, Epoch] = {}
        self._until = -math.inf

    def serves(self, bundle: str) -> bool:
        """Whether a client may be served now."""
        return self.epoch(bundle) is not None

    def epoch(self, bundle: str) -> Epoch | None:
        """The epoch of the newest record that was followed; None if it may not be served."""
        # The lease first: if it has run out, the next one must not count for bundles of before.
        return self._epochs.get(bundle) if self.leased() else None

    def holds(self, bundle: str) -> bool:
        """Whether the bundle is in ``bundles``."""
        return bundle in self._epochs

    def leased(self, seconds: float = 0.0) -> bool:
        """Whether the lease is valid for at least ``seconds``, by this machine's own clock."""
        return self._clock() + seconds < self._until

    def lease_left_s(self) -> float:
        """For how long the lease is valid; 0 without one."""
        return max(0.0, self._until - self._clock())

    def bundles(self) -> tuple[str, ...]:
        """Every bundle whose record names this broker as serving, leased or not."""
        return tuple(self._epochs.copy())

    def extend(self, until: float) -> None:
        """Set the end of the renewed lease; ``until`` is on this machine's clock, seconds."""
        self._until = until

    def hold(self, bundle: str, epoch: Epoch) -> None:
        """Let this broker serve the bundle, by its record at ``epoch``."""
        self._epochs[bundle] = epoch

    def drop(self, bundle: str) -> None:
        """Stop serving the bundle; harmless if it is not held."""
        self._epochs.pop(bundle, None)

    def clear(self) -> None:
        """Stop serving everything."""
        self._epochs.clear()
