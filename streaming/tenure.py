"""This job's right to act: its generation, claimed in Kafka and claimed anew when it is spent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from streaming.exposition import Exposition
from trimtab import metrics


class Claim(Protocol):
    """What a claim in Kafka gives."""

    @property
    def generation(self) -> int: ...

    def assert_held(self) -> None: ...

    def close(self) -> None: ...


class Tenure:
    """Holds the newest claim; ``claim`` makes one and thereby fences every older job."""

    def __init__(self, claim: Callable[[], Claim], shown: Exposition) -> None:
        self._make = claim
        self._shown = shown
        self._claim = claim()
        self._show()

    @property
    def generation(self) -> int:
        return self._claim.generation

    def renew(self) -> None:
        """Claim a higher generation; raises Fenced where a newer job holds one.

        Without the question a driver that slept through its succession would fence its successor.
        """
        self._claim.assert_held()
        spent, self._claim = self._claim, self._make()
        spent.close()
        self._show()

    def close(self) -> None:
        self._claim.close()

    def _show(self) -> None:
        self._shown.set(metrics.GENERATION, self.generation)
