"""A disk that fails under a running server: its syncs are answered with EIO, by strace."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pytest

_SYNCS: Final = "fsync,fdatasync"


@contextmanager
def failing_disk(pid: int) -> Iterator[None]:
    """Make syncs fail for as long as the block, or the process, lasts. Skips the test where that is
    impossible."""
    if shutil.which("strace") is None:
        pytest.skip("there is no strace to make a disk fail with")
    command = ["strace", "-f", "-p", str(pid), "-o", "/dev/null"]
    with subprocess.Popen(
        [*command, "-e", f"trace={_SYNCS}", "-e", f"inject={_SYNCS}:error=EIO"],
        stderr=subprocess.PIPE,
        text=True,
    ) as strace:
        assert strace.stderr is not None
        said = strace.stderr.readline()
        if "attached" not in said:
            strace.wait(10.0)
            pytest.skip(f"strace may not look at processes here: {said.strip()}")
        try:
            yield
        finally:
            # It detaches from the process, which goes on with a disk that works.
            strace.terminate()
            strace.wait(10.0)
