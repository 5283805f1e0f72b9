"""The newest record that a broker saw of each bundle, kept on disk: older ones are not trusted.

The file survives ``kill -9`` and a crash of the machine; a crash may lose the last records, never
the others. It belongs to one process at a time, and permanently to one broker of one cluster.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

from sinks.kafka.readable import MALFORMED
from trimtab.model import NO_EPOCH, Epoch
from trimtab.wire.ownership import Record

_PREPARE: Final = (
    # Two agents with one file would each miss the other's records.
    "PRAGMA locking_mode = EXCLUSIVE",
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = NORMAL",
    "CREATE TABLE IF NOT EXISTS seen (bundle TEXT PRIMARY KEY, record BLOB NOT NULL) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS whose "
    "(one INTEGER PRIMARY KEY CHECK (one = 1), cluster TEXT NOT NULL, broker TEXT NOT NULL)",
)
_OWN: Final = "INSERT OR IGNORE INTO whose VALUES (1, ?, ?)"
"""A file of an older version names no broker: it goes to its next reader."""

# As bytes: for invalid text SQLite would report that the file is in use, or cannot be written.
_READ: Final = "SELECT CAST(bundle AS BLOB), CAST(record AS BLOB) FROM seen"
_KEEP: Final = "INSERT OR REPLACE INTO seen VALUES (?, ?)"
_DROP: Final = "DELETE FROM seen WHERE bundle = ?"

_record = msgspec.json.Decoder(Record)


class Unusable(RuntimeError):
    """The file cannot be used; names the cause and what to do."""


class Seen:
    """Any thread may use it; a read is a look at a dict. Methods that write raise Unusable."""

    def __init__(self, path: Path | None, cluster: str = "", broker: str = "") -> None:
        """In memory if no path is given. Raises Unusable, also for another broker's file."""
        self._path = path
        self.changes = 0
        """How often the records have changed, in this process."""
        self._lock = threading.Lock()
        with self._explained():
            self._file = sqlite3.connect(
                ":memory:" if path is None else path,
                timeout=0.0,
                isolation_level=None,
                check_same_thread=False,
            )
        try:
            with self._explained():
                for statement in _PREPARE:
                    self._file.execute(statement)
                self._belong_to(cluster, broker)
                rows = self._file.execute(_READ)
                self._records = {bundle.decode(): _record.decode(text) for bundle, text in rows}
        except Unusable:
            self._file.close()
            raise

    def epoch(self, bundle: str) -> Epoch:
        """The newest epoch seen; NO_EPOCH if no record was seen."""
        record = self._records.get(bundle)
        return NO_EPOCH if record is None else record.epoch

    def record(self, bundle: str) -> Record | None:
        """The newest record seen."""
        return self._records.get(bundle)

    def all(self) -> dict[str, Record]:
        """A copy of all records."""
        with self._lock:
            return self._records.copy()

    def note(self, bundle: str, record: Record) -> bool:
        """Keep ``record`` if it is newer than the known one; False if it is older."""
        with self._lock:
            known = self.epoch(bundle)
            if record.epoch > known:
                self._keep(bundle, record)
            return record.epoch >= known

    def forget(self, bundles: Iterable[str]) -> None:
        """Forget the records of some bundles: all of them, or none on an error."""
        with self._lock:
            known = {bundle for bundle in bundles if bundle in self._records}
            if not known:
                return
            with self._explained(), self._transaction():
                self._file.executemany(_DROP, [(bundle,) for bundle in known])
            for bundle in known:
                del self._records[bundle]
            self.changes += 1

    def close(self) -> None:
        """Close the file; no more records can be kept."""
        with self._lock:
            self._file.close()

    def _keep(self, bundle: str, record: Record) -> None:
        # Disk first: records trusted before a crash must be known after it.
        with self._explained():
            self._file.execute(_KEEP, (bundle, msgspec.json.encode(record)))
        self._records[bundle] = record
        self.changes += 1

    def _belong_to(self, cluster: str, broker: str) -> None:
        """Raise Unusable if the file holds another broker's records."""
        self._file.execute(_OWN, (cluster, broker))
        [(of, by)] = self._file.execute("SELECT cluster, broker FROM whose")
        if (of, by) != (cluster, broker):
            raise Unusable(
                f"{self._path} keeps what {by} of cluster {of} saw, and this is {broker} of "
                f"cluster {cluster}: name a file of this broker's own, or one that is not there yet"
            )

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._file.execute("BEGIN")
        try:
            yield
        except BaseException:
            self._file.execute("ROLLBACK")
            raise
        self._file.execute("COMMIT")

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.OperationalError as error:
            # Locked, full, read-only or missing.
            raise Unusable(
                f"what this broker saw cannot be kept in {self._path}: {error}; see that no other "
                "agent uses the file, and that its folder exists, is writable and not full"
            ) from error
        except (sqlite3.Error, *MALFORMED) as error:
            raise Unusable(
                f"{self._path} is damaged, or not an agent's: {error}; move it away and start "
                "again, the broker then learns from the store"
            ) from error
