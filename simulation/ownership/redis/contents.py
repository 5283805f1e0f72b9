"""The data in a Redis, by cluster, and its last changes: a copy can be made without them.

Every write goes through ``Data.put``, which notes the previous value. So the cost of a change
depends on what it touches, however many records there are.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass, field, fields
from typing import Any, Final, NamedTuple

from trimtab.ownership import LONGEST_LEASE_MS
from trimtab.wire.assertion import Assertion
from trimtab.wire.command import Command
from trimtab.wire.ownership import Change, Record, TransitionOutcome

REMEMBERED: Final = 300
"""Changes that a server or its replica may lose."""


class Opening(NamedTuple):
    """A cluster's `open` hash; "" and 0 stand for fields that are absent."""

    generation: int = 0
    opened_on: str = ""
    """The history whose records may be changed."""
    rebuild_on: str = ""
    """The history that is being rebuilt, and since when."""
    since: int = 0
    replicas: int = 0
    replicated: bool = False
    """Whether the store ever had replicas."""
    lease_ms: int = LONGEST_LEASE_MS


class Asked(NamedTuple):
    """What replicas have to acknowledge, as a request noted it; times by the server's clock."""

    at_ms: int
    offset: int
    """They have reached it only once they have got what was written after the note."""
    heard_ms: int
    """When the last offset was noted that enough replicas reached."""


class Replicas(NamedTuple):
    """A cluster's `replicas` hash."""

    on: str = ""
    """The history that the other fields belong to."""
    online: int = 0
    alone: int | None = None
    asked: Asked | None = None
    before: int = 0
    """The most replicas that earlier histories had."""

    @property
    def ever(self) -> int:
        return max(self.online, self.before)


@dataclass(slots=True)
class Contents:
    """One cluster's keys; values are never changed in place."""

    openings: dict[str, Opening] = field(default_factory=dict)
    """One row, under ""."""
    replicas: dict[str, Replicas] = field(default_factory=dict)
    """One row, under ""."""
    records: dict[str, Record] = field(default_factory=dict)
    marks: dict[str, bool] = field(default_factory=dict)
    """One row, under "": the records were not deleted since the job rebuilt them."""
    owned: dict[str, frozenset[str]] = field(default_factory=dict)
    """Broker to the bundles whose record names it."""
    journal: dict[int, Change] = field(default_factory=dict)
    """By entry, ascending."""
    commands: dict[str, tuple[tuple[str, Command], ...]] = field(default_factory=dict)
    """Broker to the commands it has not acknowledged, by entry."""
    leases: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Broker to its session and the time its lease ends."""
    successors: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    """Broker to the session that waits for an older one, when the older lease ends, and until
    when this is remembered."""
    sessions: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Broker to the session that last held its lease and has not reported its end, and the end of
    that lease."""
    clock: dict[str, int] = field(default_factory=dict)
    """Under "", the time at which the job's clock last agreed."""
    assertions: dict[tuple[str, str], Assertion] = field(default_factory=dict)
    """History and broker to the assertion."""
    placed: dict[str, int] = field(default_factory=dict)
    tallies: dict[str, int] = field(default_factory=dict)
    applied: dict[str, tuple[int, tuple[TransitionOutcome, ...]]] = field(default_factory=dict)
    """Query to its last batch."""

    @property
    def opening(self) -> Opening:
        return self.openings.get("", Opening())

    def noted_replicas(self, history: str) -> Replicas:
        noted = self.replicas.get("", Replicas())
        return noted if noted.on == history else Replicas(history, before=noted.ever)

    @property
    def is_empty(self) -> bool:
        """Whether the `open` hash is absent."""
        return not self.openings

    def copy(self) -> Contents:
        return Contents(*(getattr(self, name).copy() for name in _TABLES))


_TABLES: Final = tuple(each.name for each in fields(Contents))


class _Write(NamedTuple):
    cluster: str
    table: str
    key: Hashable
    before: object
    """None: no row."""


@dataclass(slots=True)
class Data:
    """Everything on one server."""

    clusters: dict[str, Contents] = field(default_factory=dict)
    _changes: deque[list[_Write]] = field(default_factory=lambda: deque(maxlen=REMEMBERED))

    def of(self, cluster: str) -> Contents:
        found = self.clusters.get(cluster)
        if found is None:
            found = self.clusters[cluster] = Contents()
        return found

    def begin(self) -> None:
        """Start a change: all writes from here on are lost or kept together."""
        self._changes.append([])

    # Any: each table has values of its own type.
    def put(self, cluster: str, table: str, key: Any, value: Any) -> None:
        """Set a row of a table, or remove it if the value is None."""
        rows = getattr(self.of(cluster), table)
        if self._changes:
            self._changes[-1].append(_Write(cluster, table, key, rows.get(key)))
        _set(rows, key, value)

    def without(self, lost: int) -> Data:
        """A copy that lacks the last changes."""
        copy = Data({cluster: contents.copy() for cluster, contents in self.clusters.items()})
        for _, change in zip(range(lost), reversed(self._changes), strict=False):
            for write in reversed(change):
                _set(getattr(copy.of(write.cluster), write.table), write.key, write.before)
        for contents in copy.clusters.values():
            contents.journal = dict(sorted(contents.journal.items()))
        return copy


def _set(rows: dict[Any, Any], key: Hashable, value: object) -> None:
    if value is None:
        rows.pop(key, None)
    else:
        rows[key] = value
