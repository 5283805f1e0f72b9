"""Files on a worker's machine that spare it to ask Spark's state server."""

from __future__ import annotations

import os
from collections.abc import Iterator, MutableMapping
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import Final

from pyspark import SparkFiles

_FOLDER: Final = "state-copies"
_DIGEST_BYTES: Final = 16


class LocalCopies(MutableMapping[str, bytes]):
    """The copies of one key's pages. They may be lost at any time: a full disk keeps none, and
    another machine has none."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @classmethod
    def of(cls, operator: str, key: object) -> LocalCopies:
        """Those of a key of an operator, in the folder that Spark deletes when the job ends."""
        name = blake2b(f"{operator}/{key}".encode(), digest_size=_DIGEST_BYTES).hexdigest()
        return cls(Path(SparkFiles.getRootDirectory(), _FOLDER, name))

    def __getitem__(self, name: str) -> bytes:
        try:
            return self._at(name).read_bytes()
        except OSError as error:
            raise KeyError(name) from error

    def __setitem__(self, name: str, page: bytes) -> None:
        at = self._at(name)
        # Renamed when it is whole; not another process's draft.
        draft = at.with_suffix(f".{os.getpid()}")
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            draft.write_bytes(page)
            draft.replace(at)
        except OSError:
            for left in (draft, at):
                with suppress(OSError):
                    left.unlink()

    def __delitem__(self, name: str) -> None:
        try:
            self._at(name).unlink()
        except OSError as error:
            raise KeyError(name) from error

    def __iter__(self) -> Iterator[str]:
        with suppress(OSError):
            yield from (each.name.replace("-", "/") for each in self._folder.iterdir())

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def _at(self, name: str) -> Path:
        return self._folder / name.replace("/", "-")
