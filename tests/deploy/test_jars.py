"""The lock decides what is in the cache."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from deploy import jars, maven

CONTENT = b"a jar"
JAR = jars.Jar("org.example:tab:1.0", hashlib.sha256(CONTENT).hexdigest(), len(CONTENT))


@pytest.fixture(autouse=True)
def one_jar_to_fetch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(jars, "list_locked", lambda *_: [JAR])


def repository_has(content: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    def download(_: str, scratch: Path) -> Path:
        file = scratch / "download.jar"
        file.write_bytes(content)
        return file

    monkeypatch.setattr(maven, "download", download)


def test_a_missing_jar_is_named_with_the_command_that_fetches_it() -> None:
    assert [problem.what for problem in jars.verify()] == ["missing"]
    with pytest.raises(jars.JarError, match=r"Type: .* -m deploy\.jars$"):
        jars.connector_jars()


def test_a_second_fetch_has_nothing_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    repository_has(CONTENT, monkeypatch)
    assert jars.fetch() == [JAR]
    assert jars.verify() == []
    assert jars.fetch() == []
    assert jars.connector_jars() == [JAR.path]


def test_a_corrupted_jar_is_fetched_again(monkeypatch: pytest.MonkeyPatch) -> None:
    repository_has(CONTENT, monkeypatch)
    jars.fetch()
    JAR.path.write_bytes(b"bit rot")
    assert [problem.what for problem in jars.verify()] == ["not the locked file"]
    assert jars.fetch() == [JAR]
    assert JAR.path.read_bytes() == CONTENT


def test_a_file_with_another_hash_never_reaches_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    repository_has(b"something else", monkeypatch)
    with pytest.raises(jars.JarError, match="not the locked file"):
        jars.fetch()
    assert list(jars.cache_dir().iterdir()) == []
