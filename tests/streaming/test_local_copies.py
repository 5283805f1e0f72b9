"""Copies of pages in files: a mapping that may forget."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark import SparkFiles

from streaming.query.local_copies import LocalCopies


def test_it_is_a_mapping_that_others_see(tmp_path: Path) -> None:
    copies, others = LocalCopies(tmp_path / "new"), LocalCopies(tmp_path / "new")
    assert not copies
    copies["snapshots/0"], copies["learnt/12"] = b"first", b"second"
    copies["snapshots/0"] = b"third"
    assert dict(others) == {"snapshots/0": b"third", "learnt/12": b"second"}
    assert others.pop("learnt/12") == b"second"
    assert dict(copies) == {"snapshots/0": b"third"}
    with pytest.raises(KeyError):
        del copies["learnt/12"]
    with pytest.raises(KeyError):
        copies["learnt/12"]


def test_where_nothing_can_be_written_nothing_is_kept_and_nothing_fails(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    copies = LocalCopies(tmp_path / "file")
    copies["page"] = b"content"
    assert copies.get("page") is None
    assert not dict(copies)


def test_a_page_that_cannot_be_written_leaves_no_older_copy(tmp_path: Path) -> None:
    copies = LocalCopies(tmp_path)
    copies["page"] = b"old"
    (tmp_path / "page").unlink()
    (tmp_path / "page").mkdir()
    copies["page"] = b"new"
    assert copies.get("page") is None
    assert [each.name for each in tmp_path.iterdir()] == ["page"]


def test_keys_have_folders_of_their_own_in_the_folder_of_the_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SparkFiles, "_is_running_on_worker", True)
    monkeypatch.setattr(SparkFiles, "_root_directory", str(tmp_path))
    every = [("clusters", "../../etc"), ("clusters", "c"), ("shards", "c"), ("shards", 1)]
    for operator, key in every:
        LocalCopies.of(operator, key)["page"] = f"{operator} {key}".encode()
    for operator, key in every:
        assert LocalCopies.of(operator, key)["page"] == f"{operator} {key}".encode()
    assert len([*tmp_path.rglob("page")]) == len(every)
