"""State with its own version: a new field must not stop a query on an old checkpoint; and Spark's
states as the values and mappings that the core uses."""

from __future__ import annotations

from collections.abc import Collection, ItemsView, Iterator, MutableMapping
from typing import Any, Final

from pyspark.sql.streaming.stateful_processor import MapState, ValueState

STATE: Final = "schema int, payload binary"
"""Columns of every versioned value; Spark refuses a checkpoint whose columns changed."""


class ForeignCheckpoint(RuntimeError):
    """Another version of the job wrote this state; a retry cannot help."""


def payload_of(stored: Any, read: Collection[int], what: str) -> bytes:
    """The stored bytes, empty for none; raises ForeignCheckpoint for a schema that is not read."""
    if not stored:
        return b""
    found, payload = stored
    if found not in read:
        raise ForeignCheckpoint(
            f"the checkpoint holds {what} of schema {found}, this job of {max(read)}"
        )
    return bytes(payload)


class StoredValue:
    """Wraps a ValueState with the columns `STATE`."""

    def __init__(self, state: ValueState, read: Collection[int], what: str) -> None:
        """``read``: the schemas that are read; the greatest is written."""
        self._state, self._read, self._what = state, read, what

    def get(self) -> bytes:
        """The stored bytes, empty for none; raises ForeignCheckpoint."""
        return payload_of(self._state.get(), self._read, self._what)

    def update(self, payload: bytes) -> None:
        self._state.update((max(self._read), payload))


class StoredMapping(MutableMapping[str, bytes]):
    """Wraps a MapState from a string to a payload."""

    def __init__(self, state: MapState) -> None:
        self._state = state

    def __getitem__(self, key: str) -> bytes:
        value = self._state.getValue((key,))
        if value is None:
            raise KeyError(key)
        return bytes(value[0])

    def __setitem__(self, key: str, value: bytes) -> None:
        self._state.updateValue((key,), (value,))

    def __delitem__(self, key: str) -> None:
        if not self._state.containsKey((key,)):
            raise KeyError(key)
        self._state.removeKey((key,))

    def __iter__(self) -> Iterator[str]:
        return (key for key, _ in self.items())

    def __len__(self) -> int:
        return len(self.items())

    def items(self) -> ItemsView[str, bytes]:
        # One scan instead of a round trip to the JVM per key.
        return {key[0]: bytes(value[0]) for key, value in self._state.iterator()}.items()
