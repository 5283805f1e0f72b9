"""Where Spark and its JVM keep their working files, and an end to those that killed jobs left.

Both delete them when they end in order. A job that is killed leaves its own: twice the size of the
state. Killed again and again, as where memory is short, it would fill the disk. So each job has a
folder of its own and a lock on it, which the system takes off when the process ends, however it
ends; a job that starts deletes the folders without a lock.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import structlog

from streaming.readiness import NotReady

log = structlog.get_logger()

_OWN: Final = 0o700
"""Others may neither read state nor put files in its place."""


@contextmanager
def working_folder(base: Path | None = None) -> Iterator[Path]:
    """A new folder in ``base``, deleted at the end; raises NotReady.

    ``base`` is usually a folder of this user in the system's for temporary files (``TMPDIR``).
    """
    base = base or Path(tempfile.gettempdir(), f"trimtab-{os.getuid()}")
    try:
        path, lock = _make(base)
    except OSError as error:
        raise NotReady(
            f"Spark cannot keep its working files in {base}: {error.strerror}; set TMPDIR to a "
            "folder that this user may write"
        ) from error
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
        os.close(lock)


def _make(base: Path) -> tuple[Path, int]:
    """Make a folder; returns also the lock on it, which holds until it is closed."""
    base.mkdir(mode=_OWN, exist_ok=True)
    found = base.lstat()
    if found.st_uid != os.getuid() or base.is_symlink():
        raise NotReady(f"{base} is another user's: delete it, or set TMPDIR to another folder")
    # One job at a time, or another would delete the folder that has no lock yet.
    whole = _lock(base, fcntl.LOCK_EX)
    try:
        for each in base.iterdir():
            _delete_abandoned(each)
        path = Path(tempfile.mkdtemp(prefix="", dir=base))
        return path, _lock(path, fcntl.LOCK_EX)
    finally:
        os.close(whole)


def _lock(folder: Path, how: int) -> int:
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(opened, how)
    except OSError:
        os.close(opened)
        raise
    return opened


def _delete_abandoned(folder: Path) -> None:
    """Delete a folder, unless a process has its lock, or has just deleted it; a file stays."""
    try:
        lock = _lock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, FileNotFoundError, NotADirectoryError):
        return
    shutil.rmtree(folder, ignore_errors=True)
    os.close(lock)
    log.info("deleted the working files of a job that was killed", folder=str(folder))
