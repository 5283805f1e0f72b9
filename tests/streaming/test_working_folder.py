"""Spark's working files: each job's in a folder of its own, which outlives no job for long."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from streaming.readiness import NotReady
from streaming.working_folder import working_folder

KEEPS = """
import sys
from pathlib import Path
from streaming.working_folder import working_folder
with working_folder(Path(sys.argv[1])) as folder:
    (folder / "state").write_text("large")
    print(folder, flush=True)
    sys.stdin.read()
"""


@contextmanager
def another_job(base: Path) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """A process with a folder in ``base``, until its standard input is closed."""
    with subprocess.Popen(
        [sys.executable, "-c", KEEPS, str(base)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as job:
        assert job.stdout is not None
        yield job, Path(job.stdout.readline().strip())


def test_a_folder_is_this_user_s_alone_and_deleted_at_the_end(tmp_path: Path) -> None:
    base = tmp_path / "jobs"
    with working_folder(base) as folder:
        (folder / "state").write_text("large")
        assert base.stat().st_mode & 0o777 == 0o700
        assert folder.stat().st_mode & 0o777 == 0o700
    assert [*base.iterdir()] == []


def test_what_a_killed_job_left_is_deleted_by_the_next_one(tmp_path: Path) -> None:
    with another_job(tmp_path / "jobs") as (job, left):
        assert (left / "state").exists()
        job.send_signal(signal.SIGKILL)
        job.wait()
        assert (left / "state").exists()
        with working_folder(tmp_path / "jobs") as folder:
            assert [*folder.parent.iterdir()] == [folder]


def test_a_job_that_runs_keeps_its_folder(tmp_path: Path) -> None:
    with another_job(tmp_path / "jobs") as (job, kept):
        with working_folder(tmp_path / "jobs") as folder:
            assert {*folder.parent.iterdir()} == {folder, kept}
        assert (kept / "state").exists()
        job.communicate()
        assert not kept.exists()


def test_a_file_beside_the_folders_stays(tmp_path: Path) -> None:
    with working_folder(tmp_path / "jobs"):
        (tmp_path / "jobs" / "notes").write_text("somebody's")
        with working_folder(tmp_path / "jobs"):
            pass
    assert [each.name for each in (tmp_path / "jobs").iterdir()] == ["notes"]


def test_a_folder_by_a_link_of_somebody_is_refused(tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    (tmp_path / "jobs").symlink_to(tmp_path / "theirs")
    with pytest.raises(NotReady, match="another user's: delete it, or set TMPDIR"):
        working_folder(tmp_path / "jobs").__enter__()
    assert [*(tmp_path / "theirs").iterdir()] == []


def test_where_no_folder_can_be_made_it_is_said_what_to_set(tmp_path: Path) -> None:
    (tmp_path / "jobs").write_text("a file")
    with pytest.raises(NotReady, match=r"working files in .*jobs: .*; set TMPDIR"):
        working_folder(tmp_path / "jobs").__enter__()
