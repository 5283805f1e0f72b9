"""Asks the API what there is to show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol

_SHOWN: Final = 200
"""Brokers on the screen, the busiest first. More: a longer list than anybody reads."""
_ROUNDS: Final = 24
"""Rounds that a line of usage shows."""
_DECISIONS: Final = 100


class Asks(Protocol):
    """`admin.session.Session`: what is asked of the cluster's own paths."""

    @property
    def cluster(self) -> str: ...

    def get(self, path: str, /, **query: object) -> Any: ...


class Seen(NamedTuple):
    """What one look found, as the API told it."""

    overview: Mapping[str, Any]
    brokers: Sequence[Mapping[str, Any]]
    more: bool
    """Whether there are more brokers than these."""
    decisions: Sequence[Mapping[str, Any]]
    """What the last rounds changed and refused, the newest first."""

    @property
    def overloaded(self) -> float:
        """From which usage on a broker is overloaded (a fraction)."""
        return float(self.overview["thresholds"]["overloaded"])


class Look:
    """One cluster; all methods raise what its session raises."""

    def __init__(self, session: Asks) -> None:
        self._session = session

    @property
    def cluster(self) -> str:
        return self._session.cluster

    def again(self) -> Seen:
        """Ask for all that the screen shows."""
        overview = self._session.get("overview")
        lines = self._session.get("heat-map", by="broker", limit=_SHOWN, rounds=_ROUNDS)
        decisions = self._session.get("decisions", limit=_DECISIONS)
        return Seen(overview, lines["rows"], lines["next"] is not None, decisions)

    def explain(self, subject: str) -> Mapping[str, Any]:
        """Why the last round did with a broker or bundle what it did."""
        found: Mapping[str, Any] = self._session.get("why", subject=subject)
        return found
