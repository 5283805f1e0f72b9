"""All that both operators hold of a cluster after a batch: what a replay can start from.

Operator ① sends every snapshot it stores on to ②, so ② holds both: the snapshots that rounds read,
and those that it set aside, from which ① goes on once their brokers are heard again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from trimtab.settings import Settings
from trimtab.state.memory import Memory
from trimtab.wire.rows import Row, Tag

_MEMORY, _SNAPSHOT, _ASIDE, _NAMESPACE = "memory", "snapshot", "aside", "namespace"

_KINDS: Final = frozenset({_MEMORY, _SNAPSHOT, _ASIDE, _NAMESPACE})


@dataclass(frozen=True, slots=True)
class ClusterExport:
    """Each value packed as the operators store it."""

    memory: bytes
    snapshots: Mapping[str, bytes]
    """By broker."""
    aside: Mapping[str, bytes]
    """By broker: what ① alone still goes by."""
    namespaces: Mapping[str, bytes]

    def rows(self, cluster: str, now_ms: int) -> list[Row]:
        """A row each, for the sinks; ``subject`` says what it is."""
        return [Row(cluster, Tag.STATE, name, value, now_ms) for name, value in self._parts()]

    def _parts(self) -> Iterator[tuple[str, bytes]]:
        yield _MEMORY, self.memory
        for kind, values in (
            (_SNAPSHOT, self.snapshots),
            (_ASIDE, self.aside),
            (_NAMESPACE, self.namespaces),
        ):
            for name, value in sorted(values.items()):
                yield f"{kind}/{name}", value

    @classmethod
    def of(cls, parts: Iterable[tuple[str, bytes]]) -> ClusterExport:
        """From subjects and payloads; raises ValueError where it is none of these rows."""
        found: dict[str, dict[str, bytes]] = {kind: {} for kind in _KINDS}
        for subject, payload in parts:
            kind, _, name = subject.partition("/")
            if kind not in found:
                raise ValueError(f"{subject}: nothing is held by this name")
            found[kind][name] = payload
        if "" not in found[_MEMORY]:
            raise ValueError("the memory is not among what was exported")
        return cls(found[_MEMORY][""], found[_SNAPSHOT], found[_ASIDE], found[_NAMESPACE])


def due(memory: Memory, settings: Settings, now_ms: int) -> bool:
    """Whether to export after this batch; ``now_ms`` is its timestamp."""
    interval_ms = settings.replay.export_interval * 1000
    # A clock that was set back must not stop exports until it has caught up.
    return interval_ms > 0 and not 0 <= now_ms - memory.exported_ms < interval_ms
