"""A checkpoint's folder through Spark's file systems, and what they say of an unusable one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from streaming.query.folder import Folder, FolderError


class Unrenaming:
    """A file system that cannot rename."""

    # Any: Java objects.
    def __init__(self, files: Any) -> None:
        self._files = files
        self.draft_bytes = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._files, name)

    def rename(self, draft: object, _final: object) -> bool:
        self.draft_bytes = self._files.getFileStatus(draft).getLen()
        return False


def test_what_is_not_there_has_no_names(spark: SparkSession, tmp_path: Path) -> None:
    assert Folder(spark, str(tmp_path / "none")).names() == []
    assert Folder(spark, str(tmp_path)).names("offsets") == []


def test_files_are_named_and_read_and_hidden_ones_are_left_out(
    spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "offsets").mkdir()
    (tmp_path / "offsets" / "7").write_text("v1\n\u00e9")
    (tmp_path / "offsets" / ".nfs0001").touch()
    folder = Folder(spark, str(tmp_path))
    assert folder.names() == ["offsets"]
    assert folder.names("offsets") == ["7"]
    assert folder.read("offsets/7") == "v1\n\u00e9"


def test_the_first_try_makes_the_folder_and_each_leaves_nothing_in_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    place = tmp_path / "not" / "yet"
    for _ in range(2):
        Folder(spark, str(place)).try_writing()
        assert list(place.iterdir()) == []


def test_where_files_cannot_be_renamed_no_query_can_write(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Folder(spark, str(tmp_path))
    files = Unrenaming(folder._files())
    monkeypatch.setattr(folder, "_files", lambda: files)
    with pytest.raises(FolderError, match="files in it cannot be renamed"):
        folder.try_writing()
    # A full disk still takes empty files.
    assert files.draft_bytes > 0
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_not_there_cannot_be_read(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(FolderError, match=f"{tmp_path}/metadata"):
        Folder(spark, str(tmp_path)).read("metadata")


def test_a_file_in_the_place_of_the_folder_is_told_in_plain_words(
    spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    said = f"^Destination exists and is not a directory: {tmp_path}/file$"
    with pytest.raises(FolderError, match=said):
        Folder(spark, str(tmp_path / "file")).try_writing()


def test_a_folder_that_no_file_system_has_is_told_in_plain_words(spark: SparkSession) -> None:
    folder = Folder(spark, "nonsense://a/b")
    with pytest.raises(FolderError, match=r"^No FileSystem for scheme"):
        folder.names()
    with pytest.raises(FolderError, match=r"^No FileSystem for scheme"):
        folder.try_writing()


def test_a_path_that_is_no_uri_is_told_in_plain_words(spark: SparkSession) -> None:
    folder = Folder(spark, "no:where")
    for ask in (folder.names, folder.try_writing, lambda: folder.read("metadata")):
        with pytest.raises(FolderError, match=r"^Relative path in absolute URI: no:where"):
            ask()
