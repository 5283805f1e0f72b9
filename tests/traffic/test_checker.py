"""The checker finds each fault in diaries that have it, and none in those that have not."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulation.traffic.checker import Did, Note, Verdict, judge, read

T = "persistent://t/ns/a"


def sent(*numbers: int, producer: str = "p") -> list[Note]:
    """Sent, and stored."""
    return [Note(did, T, producer, number) for number in numbers for did in (Did.SENT, Did.STORED)]


def got(*numbers: int, producer: str = "p", key: str = "k", subscription: str = "s") -> list[Note]:
    return [
        Note(Did.GOT, T, producer, number, key=key, subscription=subscription) for number in numbers
    ]


def found(verdict: Verdict) -> dict[str, list[int]]:
    faults = ((name, [each.number for each in faults]) for name, faults in verdict.faults())
    return {name: numbers for name, numbers in faults if numbers}


@pytest.mark.parametrize(
    ("notes", "faults"),
    [
        pytest.param([*sent(0, 1, 2), *got(0, 1, 2)], {}, id="all is well"),
        pytest.param([*sent(0, 1, 2), *got(0, 2)], {"lost": [1]}, id="one is lost"),
        pytest.param([*sent(0, 1), *got(0, 0, 1)], {"duplicated": [0]}, id="one came twice"),
        pytest.param([*sent(0, 1, 2), *got(0, 2, 1)], {"disordered": [1]}, id="one came late"),
        pytest.param(
            [*sent(0, 1), *got(1), *got(0, key="other")], {}, id="keys have no order among them"
        ),
        pytest.param(
            [*sent(0, 1), *sent(0, 1, producer="q"), *got(0, 1, producer="q"), *got(0, 1)],
            {},
            id="producers have no order among them",
        ),
        pytest.param([*sent(0), *got(0, 7)], {"unknown": [7]}, id="one that was never sent"),
        pytest.param(
            [*sent(0), Note(Did.SENT, T, "p", 1), *got(0, 1)],
            {"unstored": [1]},
            id="one whose storage was never acknowledged",
        ),
        pytest.param(
            [*sent(0, 1), *got(0, 1), *got(1, subscription="late")],
            {},
            id="a subscription that came later lacks what was before it",
        ),
        pytest.param(
            [*sent(0), *got(0), *got(0, 0, subscription="late")],
            {"duplicated": [0]},
            id="but gets nothing twice either",
        ),
    ],
)
def test_what_it_finds(notes: list[Note], faults: dict[str, list[int]]) -> None:
    verdict = judge(notes, ["s"])
    assert found(verdict) == faults
    assert verdict.ok == (not faults)


def test_a_message_is_looked_for_in_every_subscription() -> None:
    verdict = judge([*sent(0), *got(0)], ["s", "audit"])
    assert [str(each) for each in verdict.lost] == [f"{T} p/0 for audit"]
    assert "lost 1" in str(verdict)


_NUMBERS = st.lists(st.integers(0, 30), unique=True, min_size=1).map(sorted)


@given(_NUMBERS, st.data())
def test_every_message_that_is_left_out_is_found(numbers: list[int], data: st.DataObject) -> None:
    kept = data.draw(st.lists(st.sampled_from(numbers), unique=True).map(sorted))
    expected = sorted(set(numbers) - set(kept))
    assert found(judge([*sent(*numbers), *got(*kept)], ["s"])) == (
        {"lost": expected} if expected else {}
    )


@given(_NUMBERS, st.data())
def test_every_message_that_comes_again_is_found(numbers: list[int], data: st.DataObject) -> None:
    again = data.draw(st.lists(st.sampled_from(numbers), unique=True))
    verdict = judge([*sent(*numbers), *got(*numbers), *got(*again)], ["s"])
    assert sorted(each.number for each in verdict.duplicated) == sorted(again)
    assert not verdict.disordered
    assert not verdict.lost


def test_a_line_that_a_kill_cut_short_is_left_out(tmp_path: Path) -> None:
    notes = [*sent(0, 1), *got(0, 1)]
    diary = tmp_path / "diary"
    lines = b"".join(msgspec.json.encode(note) + b"\n" for note in notes)
    diary.write_bytes(lines + b'{"did":"got","top')
    assert list(read([diary])) == notes
    diary.write_bytes(b"{}\n" + lines)
    with pytest.raises(msgspec.MsgspecError):
        list(read([diary]))
