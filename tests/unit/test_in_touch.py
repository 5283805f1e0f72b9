"""Whether a master is in touch with its replicas, by what it noted before."""

from __future__ import annotations

import pytest

from sinks.redis.leasing.in_touch import ASK_AGAIN_MS, look
from sinks.redis.server.survey import Replica
from trimtab.ownership import REPLICA_WAIT_MS

HERE, THERE = "a" * 40, "b" * 40
NOW = 1_800_000_000_000


def replica(offset: int, lag_s: int = 0) -> Replica:
    return Replica("r:1", online=True, lag_s=lag_s, offset=offset)


def noted(ago_ms: int, offset: int = 50, heard_ago_ms: int | None = None) -> bytes:
    heard = ago_ms if heard_ago_ms is None else heard_ago_ms
    return f"{HERE} {NOW - ago_ms} {offset} {NOW - heard}".encode()


@pytest.mark.parametrize("note", [None, b"nonsense", f"{THERE} 1 2 1".encode()])
def test_without_a_note_of_this_history_it_is_believed_once(note: bytes | None) -> None:
    assert look(note, HERE, NOW, 70, [], 1) == (True, f"{HERE} {NOW} 71 {NOW}")


def test_what_was_acknowledged_lately_counts_from_when_it_was_asked_for() -> None:
    assert look(noted(REPLICA_WAIT_MS), HERE, NOW, 70, [replica(50)], 1).in_touch
    assert not look(noted(REPLICA_WAIT_MS + 1), HERE, NOW, 70, [replica(50)], 1).in_touch


def test_an_acknowledgement_of_too_little_does_not_count_however_new_it_is() -> None:
    late = noted(100, 51, heard_ago_ms=REPLICA_WAIT_MS + 1)
    assert look(late, HERE, NOW, 70, [replica(50)], 1) == (False, "")


@pytest.mark.parametrize("replicas", [[replica(50)], [replica(50), replica(49)], [replica(50, 9)]])
def test_enough_of_them_must_have_acknowledged_it(replicas: list[Replica]) -> None:
    late = noted(100, 50, heard_ago_ms=REPLICA_WAIT_MS + 1)
    assert not look(late, HERE, NOW, 70, replicas, 2).in_touch


def test_after_a_refusal_they_are_asked_for_what_is_written_from_then_on() -> None:
    long_ago = NOW - REPLICA_WAIT_MS - 1
    found = look(noted(REPLICA_WAIT_MS + 1), HERE, NOW, 70, [replica(60)], 1)
    assert found == (False, f"{HERE} {NOW} 71 {long_ago}")
    assert look(found.note.encode(), HERE, NOW + 900, 80, [replica(71)], 1).in_touch


@pytest.mark.parametrize(("ago_ms", "again"), [(ASK_AGAIN_MS - 1, False), (ASK_AGAIN_MS, True)])
def test_they_are_not_asked_at_each_request(ago_ms: int, again: bool) -> None:
    assert bool(look(noted(ago_ms), HERE, NOW, 70, [replica(50)], 1).note) == again


def test_a_clock_that_went_back_proves_nothing() -> None:
    assert not look(noted(-1), HERE, NOW, 70, [replica(50)], 1).in_touch
