"""Where a new query begins to read reports: kept in the checkpoint, where Spark's Kafka connector
keeps it, because Spark asks a source of our own again until a batch has begun."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, Protocol

from streaming.query.offsets import first_file, format_first, parse_first
from trimtab.wire import keys

FILE: Final = first_file(0)
"""Reports are the query's first source."""


class Files(Protocol):
    """A `streaming.query.folder.Folder`."""

    def read(self, name: str) -> str: ...

    def names(self, name: str = "") -> list[str]: ...

    def write(self, name: str, text: str) -> None: ...


def first_offsets(files: Files, ask: Callable[[], Mapping[int, int]]) -> dict[str, int]:
    """Partition to first offset; ``ask`` is called, and its answer kept, if none is kept yet."""
    folder, _, name = FILE.rpartition("/")
    if name not in files.names(folder):
        told = {str(number): at for number, at in sorted(ask().items())}
        files.write(FILE, format_first({keys.LOAD_REPORTS: told}))
    return parse_first(files.read(FILE))[keys.LOAD_REPORTS]
