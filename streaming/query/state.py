"""Spark's state as the core uses it, with a version of its own: a new field must not stop a query
on an old checkpoint."""

from __future__ import annotations

from binascii import a2b_base64, b2a_base64
from collections.abc import ItemsView, Iterator, MutableMapping
from typing import Any, Final

from pyspark.sql.streaming.stateful_processor import MapState

SCHEMA: Final = 6
"""Of all that is stored; what follows must read what it wrote, or have another number."""

_READ: Final = frozenset({4, 5, SCHEMA})
"""Schemas that are read: 4 had no brokers' latest figures beside their snapshots, 5 kept each
namespace's records by themselves."""

COLUMNS: Final = ("name string", "schema int, payload string")
"""Of every mapping; Spark refuses a checkpoint whose columns changed."""


class ForeignCheckpoint(RuntimeError):
    """Another version of the job wrote this state; a retry cannot help."""


class StoredMapping(MutableMapping[str, bytes]):
    """Wraps a MapState with `COLUMNS`.

    The payload is base64, which takes a third more space: Spark's state server pickles bytes one by
    one, and a text at once.
    """

    def __init__(self, state: MapState) -> None:
        self._state = state

    def __getitem__(self, key: str) -> bytes:
        value = self._state.getValue((key,))
        if value is None:
            raise KeyError(key)
        return _payload(value)

    def __setitem__(self, key: str, value: bytes) -> None:
        text = b2a_base64(value, newline=False).decode("ascii")
        self._state.updateValue((key,), (SCHEMA, text))

    def __delitem__(self, key: str) -> None:
        if not self._state.containsKey((key,)):
            raise KeyError(key)
        self._state.removeKey((key,))

    def __iter__(self) -> Iterator[str]:
        return (key for key, _ in self.items())

    def __len__(self) -> int:
        return len(self.items())

    def clear(self) -> None:
        self._state.clear()

    def items(self) -> ItemsView[str, bytes]:
        # One scan instead of a round trip to the JVM per key.
        return {key: _payload(value) for (key,), value in self._state.iterator()}.items()


def _payload(value: Any) -> bytes:
    """The stored bytes; raises ForeignCheckpoint for another schema."""
    found, text = value
    if found not in _READ:
        raise ForeignCheckpoint(
            f"the checkpoint holds state of schema {found}, this job of {SCHEMA}"
        )
    return a2b_base64(text)
