"""Exports the state that both operators hold for a cluster; a replay can start from it.

Operator ① sends all that it stores of a broker to ②, so ② holds both kinds: those that rounds read,
and those it set aside, from which ① continues once their brokers report again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from trimtab.settings import Settings
from trimtab.state.memory import Memory
from trimtab.wire.rows import Row, Tag

_MEMORY, _SNAPSHOT, _ASIDE, _NAMESPACE = "memory", "snapshot", "aside", "namespace"
_LATEST = "latest"

_KINDS: Final = frozenset({_MEMORY, _SNAPSHOT, _ASIDE, _NAMESPACE, _LATEST})


@dataclass(frozen=True, slots=True)
class ClusterExport:
    """A cluster's exported state; each value is packed as the operators store it."""

    memory: bytes
    snapshots: Mapping[str, bytes]
    """Broker to packed Snapshot."""
    aside: Mapping[str, bytes]
    """Broker to packed Snapshot, for those that only ① still uses."""
    namespaces: Mapping[str, bytes]
    latest: Mapping[str, bytes] = field(default_factory=dict)
    """Broker to packed Latest, where that is newer than its snapshot."""

    def rows(self, cluster: str, now_ms: int) -> list[Row]:
        """One row per value, for the sinks; ``subject`` names the value."""
        return [Row(cluster, Tag.STATE, name, value, now_ms) for name, value in self._parts()]

    def _parts(self) -> Iterator[tuple[str, bytes]]:
        yield _MEMORY, self.memory
        for kind, values in (
            (_SNAPSHOT, self.snapshots),
            (_ASIDE, self.aside),
            (_NAMESPACE, self.namespaces),
            (_LATEST, self.latest),
        ):
            for name, value in sorted(values.items()):
                yield f"{kind}/{name}", value

    @classmethod
    def of(cls, parts: Iterable[tuple[str, bytes]]) -> ClusterExport:
        """Build from subjects and payloads; raises ValueError if they are not these rows."""
        found: dict[str, dict[str, bytes]] = {kind: {} for kind in _KINDS}
        for subject, payload in parts:
            kind, _, name = subject.partition("/")
            if kind not in found:
                raise ValueError(f"{subject}: nothing is held by this name")
            found[kind][name] = payload
        if "" not in found[_MEMORY]:
            raise ValueError("the memory is not among what was exported")
        kinds = (_SNAPSHOT, _ASIDE, _NAMESPACE, _LATEST)
        return cls(found[_MEMORY][""], *(found[kind] for kind in kinds))


def due(memory: Memory, settings: Settings, now_ms: int) -> bool:
    """Whether to export after this batch; ``now_ms`` is its timestamp."""
    interval_ms = settings.replay.export_interval * 1000
    # A clock that was set back must not stop exports until it has caught up.
    return interval_ms > 0 and not 0 <= now_ms - memory.exported_ms < interval_ms
