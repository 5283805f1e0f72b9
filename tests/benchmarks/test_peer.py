"""Pulsar's own classes are given our cluster, and their jars are the locked ones."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import pytest

from benchmarks import decisions
from benchmarks.agreement import Disagreement
from benchmarks.decisions import CONF, MATCHES, compare
from benchmarks.peer import class_path, relock
from benchmarks.peer.process import Peer, javac
from benchmarks.synthetic import columns
from deploy import maven
from deploy.jars import Jar, JarError, cache_dir
from trimtab.settings import Settings

needs_jdk = pytest.mark.skipif(shutil.which(javac()) is None, reason="there is no JDK")

CONTENT = b"a jar"
JAR = Jar("org.example:tab:1.0", hashlib.sha256(CONTENT).hexdigest(), len(CONTENT))


@needs_jdk
def test_both_sides_decide_the_same_on_a_small_cluster(tmp_path: Path) -> None:
    figures = compare(columns(40, 50, 1), tmp_path)
    assert [figure.name for figure in figures] == [f"decisions.{name}" for name in MATCHES]
    for figure, match in zip(figures, MATCHES.values(), strict=True):
        assert [len(numbers) for numbers in figure.raw.values()] == [match.rounds] * 2


@needs_jdk
def test_a_difference_ends_the_comparison(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = Settings.parse({**CONF, "unload.max_share": 0.4})
    monkeypatch.setattr(decisions, "SETTINGS", other)
    with pytest.raises(Disagreement, match=r"avg: \d+ brokers shed differently"):
        compare(columns(20, 50, 1), tmp_path)


@needs_jdk
def test_the_end_of_pulsars_process_is_reported_at_once(tmp_path: Path) -> None:
    with Peer(columns(2, 2, 1), {}, tmp_path, "256m") as peer:
        assert peer.loaded.heap_bytes > 0
        with pytest.raises(RuntimeError, match="ended with status 1"):
            peer.round("NoSuchShedder")


def test_the_lock_names_the_jars_that_were_asked_for() -> None:
    assert tuple(jar.coordinate for jar in class_path.locked()) == relock.JARS


@pytest.mark.parametrize(
    "before", [pytest.param(None, id="missing"), pytest.param(b"bit rot", id="damaged")]
)
def test_a_jar_is_fetched_where_the_locked_one_is_not_there(
    before: bytes | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository_has(CONTENT, tmp_path, monkeypatch)
    if before is not None:
        cache_dir().mkdir(parents=True)
        JAR.path.write_bytes(before)
    assert class_path.class_path() == [JAR.path]
    assert JAR.path.read_bytes() == CONTENT


def test_a_file_with_another_hash_never_reaches_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository_has(b"something else", tmp_path, monkeypatch)
    with pytest.raises(JarError, match="not the locked file"):
        class_path.class_path()
    assert list(cache_dir().iterdir()) == []


def repository_has(content: bytes, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def download(_: str, scratch: Path) -> Path:
        file = scratch / "download.jar"
        file.write_bytes(content)
        return file

    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
    monkeypatch.setattr(class_path, "locked", lambda: [JAR])
    monkeypatch.setattr(maven, "download", download)
