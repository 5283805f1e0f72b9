"""What this broker may serve: the bundles its records give it, while its lease holds."""

from __future__ import annotations

import math
from collections.abc import Callable

from trimtab.model import Epoch


class Holdings:
    """Written by the agent's thread, asked by the threads that serve clients.

    Those threads take no lock: each question is one look at a dict and one at a float.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._epochs: dict[str, Epoch] = {}
        self._until = -math.inf

    def serves(self, bundle: str) -> bool:
        """Whether a client may be served now."""
        return bundle in self._epochs and self.leased()

    def epoch(self, bundle: str) -> Epoch | None:
        """Since which epoch this broker serves the bundle; None where it may not be served."""
        epoch = self._epochs.get(bundle)
        return epoch if self.leased() else None

    def leased(self, seconds: float = 0.0) -> bool:
        """Whether the lease still holds, for so long at least, by this machine's own clock."""
        return self._clock() + seconds < self._until

    def bundles(self) -> tuple[str, ...]:
        """Every bundle whose record names this broker as serving, leased or not."""
        return tuple(self._epochs.copy())

    def extend(self, until: float) -> None:
        """The lease was renewed; ``until`` is on this machine's clock, seconds."""
        self._until = until

    def hold(self, bundle: str, epoch: Epoch) -> None:
        """The record at ``epoch`` lets this broker serve the bundle."""
        self._epochs[bundle] = epoch

    def drop(self, bundle: str) -> None:
        """Stop serving the bundle; harmless when it is not held."""
        self._epochs.pop(bundle, None)

    def clear(self) -> None:
        """Stop serving everything."""
        self._epochs.clear()
