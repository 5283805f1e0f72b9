"""Asks the API what there is to show, again and again, and remembers how usage went."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol

SHOWN: Final = 200
"""Brokers on the screen, the busiest first. More: a longer list than anybody reads.

Of a larger fleet the rounds before the first look are not read: each holds the usage of all."""
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

    status: Mapping[str, Any]
    brokers: Sequence[Mapping[str, Any]]
    more: bool
    """Whether there are more brokers than these."""
    usage: Mapping[str, Sequence[float]]
    """Each broker's usage (fractions) in the last rounds, the newest last."""
    decisions: Sequence[Mapping[str, Any]]
    """What the last rounds changed and refused, the newest first."""


class Look:
    """One cluster, looked at by one thread; all methods raise what its session raises."""

    def __init__(self, session: Asks) -> None:
        self._session = session
        self._known: tuple[int, int] = (-1, -1)
        """The newest round that was read: its time, its number."""
        self._usage: dict[str, deque[float]] = {}

    @property
    def cluster(self) -> str:
        return self._session.cluster

    def again(self) -> Seen:
        """Ask for everything that is new."""
        status = self._session.get("")
        page = self._session.get("brokers", limit=SHOWN)
        limit = 1 if page["next"] else _ROUNDS
        for held in reversed(self._session.get("rounds", limit=limit)):
            if (held["at"], held["round"]) > self._known:
                self._read(held)
        return Seen(
            status,
            page["brokers"],
            page["next"] is not None,
            {broker: tuple(usage) for broker, usage in self._usage.items()},
            self._session.get("decisions", limit=_DECISIONS),
        )

    def overloaded(self) -> float:
        """From which usage on a broker is overloaded (a fraction), by the settings in force."""
        values = {each["name"]: each["value"] for each in self._session.get("settings")}
        return float(values["round.overloaded_threshold"])

    def explain(self, subject: str) -> Mapping[str, Any]:
        """Why the last round did with a broker or bundle what it did."""
        found: Mapping[str, Any] = self._session.get("why", subject=subject)
        return found

    def _read(self, held: Mapping[str, Any]) -> None:
        record = self._session.get(f"rounds/{held['round']}")
        self._known = held["at"], held["round"]
        for broker, usage in record["usage"].items():
            self._usage.setdefault(broker, deque(maxlen=_ROUNDS)).append(usage)
