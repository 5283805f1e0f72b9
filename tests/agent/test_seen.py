"""What a broker saw of records stays seen, whatever happens to its process."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.ownership.seen import Seen, Unusable
from tests.agent.seen_records import ONE, TWO, record
from trimtab.model import NO_EPOCH, Epoch
from trimtab.wire.ownership import Record


def test_a_bundle_that_was_never_seen_has_no_epoch() -> None:
    seen = Seen(None)
    assert (seen.epoch(ONE), seen.record(ONE), seen.all()) == (NO_EPOCH, None, {})


@pytest.mark.parametrize(
    ("told", "believed", "kept"),
    [
        pytest.param(record(2, 8), True, record(2, 8), id="newer by its counter"),
        pytest.param(record(3, 1), True, record(3, 1), id="newer by its generation"),
        pytest.param(record(2, 7, "b:8080"), True, record(2, 7), id="as old"),
        pytest.param(record(2, 6), False, record(2, 7), id="older by its counter"),
        pytest.param(record(1, 9), False, record(2, 7), id="older by its generation"),
    ],
)
def test_only_a_newer_record_is_kept(told: Record, believed: bool, kept: Record) -> None:
    seen = Seen(None)
    assert seen.note(ONE, record(2, 7))
    assert seen.note(ONE, told) is believed
    assert seen.record(ONE) == kept


def test_the_newer_records_are_read_back(tmp_path: Path) -> None:
    seen = Seen(tmp_path / "seen")
    seen.note(ONE, record(2, 7))
    seen.note(ONE, record(2, 6))
    seen.note(TWO, record(1, 1))
    expected = {ONE: record(2, 7), TWO: record(1, 1)}
    assert seen.all() == expected
    seen.close()
    assert Seen(tmp_path / "seen").all() == expected


def test_what_is_forgotten_is_forgotten_for_good(tmp_path: Path) -> None:
    seen = Seen(tmp_path / "seen")
    seen.note(ONE, record(2, 7))
    seen.note(TWO, record(1, 1))
    seen.forget([ONE, ONE, "t/ns/never-seen"])
    assert seen.epoch(ONE) == NO_EPOCH
    seen.close()
    assert Seen(tmp_path / "seen").all() == {TWO: record(1, 1)}


def test_what_was_noted_outlives_kill_9(tmp_path: Path) -> None:
    path = tmp_path / "seen"
    script = f"""
import os, signal
from pathlib import Path
from agent.ownership.seen import Seen
from tests.agent.seen_records import ONE, TWO, record
seen = Seen(Path({str(path)!r}))
seen.note(ONE, record(4, 2))
seen.note(TWO, record(4, 3))
seen.note(ONE, record(4, 9))
seen.note(TWO, record(5, 1))
os.kill(os.getpid(), signal.SIGKILL)
"""
    root = Path(__file__).parents[2]
    ended = subprocess.run([sys.executable, "-c", script], cwd=root, check=False, timeout=60)
    assert ended.returncode == -signal.SIGKILL
    assert Seen(path).all() == {ONE: record(4, 9), TWO: record(5, 1)}


def test_a_file_in_use_says_so(tmp_path: Path) -> None:
    path = tmp_path / "seen"
    first = Seen(path)
    with pytest.raises(Unusable, match=f"{path}: database is locked; see that no other"):
        Seen(path)
    first.close()
    Seen(path).close()


@pytest.mark.parametrize(("cluster", "broker"), [("west", "a:1"), ("east", "b:1"), ("", "")])
def test_a_file_of_another_broker_is_refused(tmp_path: Path, cluster: str, broker: str) -> None:
    path = tmp_path / "seen"
    mine = Seen(path, "east", "a:1")
    mine.note(ONE, record(40, 9))
    mine.close()
    with pytest.raises(Unusable, match=f"{path} keeps what a:1 of cluster east saw, .*name a file"):
        Seen(path, cluster, broker)
    again = Seen(path, "east", "a:1")
    assert again.all() == {ONE: record(40, 9)}
    again.close()


def test_a_file_of_an_older_version_becomes_its_readers(tmp_path: Path) -> None:
    path = tmp_path / "seen"
    Seen(path, "east", "a:1").close()
    with sqlite3.connect(path) as file:
        file.execute("DROP TABLE whose")
        file.execute("INSERT INTO seen VALUES (?, ?)", (ONE, msgspec.json.encode(record(4, 2))))
    file.close()
    seen = Seen(path, "east", "b:1")
    assert seen.all() == {ONE: record(4, 2)}
    seen.close()
    with pytest.raises(Unusable, match="b:1 of cluster east"):
        Seen(path, "east", "a:1")


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(Unusable, match="no-such/seen: unable to open"):
        Seen(tmp_path / "no-such" / "seen")


@pytest.mark.parametrize(
    "damaged",
    [
        pytest.param(b'{"state": "Lost"}', id="no state"),
        pytest.param(b'{"state": "Free", "epoch": [1, 1], "owner": "\xff"}', id="no text"),
        pytest.param(b'{"x":' + b"[" * 100_000, id="nested too deeply"),
        pytest.param(7, id="no record"),
        pytest.param(None, id="no database"),
    ],
)
def test_a_damaged_file_says_what_to_do(tmp_path: Path, damaged: bytes | int | None) -> None:
    path = tmp_path / "seen"
    if damaged is None:
        path.write_bytes(b"no database" * 100)
    else:
        Seen(path).close()
        with sqlite3.connect(path) as file:
            file.execute("INSERT INTO seen VALUES (?, ?)", (ONE, damaged))
        file.close()
    with pytest.raises(Unusable, match=f"{path} is damaged, or not an agent's: .*; move it away"):
        Seen(path)
    os.rename(path, path.with_suffix(".damaged"))
    Seen(path).close()


def test_a_bundle_whose_name_is_no_text_is_damage(tmp_path: Path) -> None:
    path = tmp_path / "seen"
    Seen(path).close()
    with sqlite3.connect(path) as file:
        file.execute("INSERT INTO seen VALUES (CAST(x'ff' AS TEXT), '{}')")
    file.close()
    with pytest.raises(Unusable, match=f"{path} is damaged"):
        Seen(path)


def test_after_a_failed_write_nothing_new_is_believed(tmp_path: Path) -> None:
    seen = Seen(tmp_path / "seen")
    seen.note(ONE, record(1, 1))
    seen.close()
    for attempt in (
        lambda: seen.note(ONE, record(1, 2)),
        lambda: seen.forget([ONE]),
    ):
        with pytest.raises(Unusable):
            attempt()
    assert seen.all() == {ONE: record(1, 1)}


@given(
    st.lists(
        st.dictionaries(
            st.sampled_from([ONE, TWO]), st.tuples(st.integers(0, 3), st.integers(0, 3))
        )
    )
)
def test_the_highest_epoch_of_each_bundle_is_kept(batches: list[dict[str, Epoch]]) -> None:
    seen = Seen(None)
    highest: dict[str, Epoch] = {}
    for batch in batches:
        for bundle, (generation, counter) in batch.items():
            seen.note(bundle, record(generation, counter))
            highest[bundle] = max(highest.get(bundle, NO_EPOCH), Epoch(generation, counter))
    assert {bundle: seen.epoch(bundle) for bundle in highest} == highest
    seen.close()
