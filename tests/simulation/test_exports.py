"""What was held of a cluster comes back from Kafka whole, or not at all."""

from __future__ import annotations

from itertools import chain

import msgspec
import pytest

from simulation.replay.exports import SKEW_MS, held_after
from simulation.replay.recorded import Missing
from sinks.kafka.pages import PAGE
from sinks.kafka.publisher import Outgoing
from sinks.kafka.state_records import state_pages
from tests.support.kept_topics import KeptTopics
from trimtab.cluster.export import ClusterExport
from trimtab.store.requests import BatchId
from trimtab.wire import keys
from trimtab.wire.columns import pack, unpack
from trimtab.wire.pieces import PIECE
from trimtab.wire.state import StateRecord, state_key

BATCH = BatchId("q", 7)
AT = 1_800_000_000_000
HELD = ClusterExport(
    memory=b"memory",
    snapshots={"b:1": b"s" * (2 * PIECE + 1), "a:1": b"", "c/d:1": b"a slash"},
    aside={"gone:1": b"g"},
    namespaces={"t/ns": b"n" * PIECE},
)


def told(held: ClusterExport, batch: BatchId = BATCH, generation: int = 1) -> list[Outgoing]:
    return list(chain(*state_pages(held.rows("east", AT), batch, generation)))


def read(*records: Outgoing) -> ClusterExport:
    topics = KeptTopics()
    topics.publish(records, AT)
    return held_after(topics, BATCH, AT, "east")


def test_what_was_told_in_pieces_comes_back_whole() -> None:
    assert read(*told(HELD)) == HELD


def test_pieces_that_were_told_twice_count_once() -> None:
    assert read(*told(HELD)[:3], *told(HELD)) == HELD


def test_the_newest_driver_that_told_all_of_it_is_believed() -> None:
    older = ClusterExport(b"older", {}, {}, {"t/old": b"o"})
    assert read(*told(older), *told(HELD, generation=2)) == HELD
    assert read(*told(older), *told(HELD, generation=2)[:-1]) == older


@pytest.mark.parametrize("value", [b"", b"junk", b"\xff", b"\x80", b"[" * 5000])
def test_a_piece_that_no_job_has_written_is_left_out(value: bytes) -> None:
    foreign = Outgoing(keys.STATE, state_key("q", 7, "east"), value)
    assert read(foreign, *told(HELD), foreign) == HELD


def test_of_other_batches_and_clusters_nothing_is_taken() -> None:
    other = ClusterExport(b"other", {}, {}, {})
    before = told(other, BatchId("q", 6))
    elsewhere = list(chain(*state_pages(other.rows("west", AT), BATCH, 1)))
    query = told(other, BatchId("another", 9))
    assert read(*before, *elsewhere, *query, *told(HELD), *told(other, BatchId("q", 8))) == HELD


@pytest.mark.parametrize(
    "records",
    [
        pytest.param([], id="nothing"),
        pytest.param(told(HELD)[:-1], id="one piece is lacking"),
        pytest.param(told(HELD, BatchId("q", 8)), id="a later batch alone"),
    ],
)
def test_what_is_not_whole_is_missing(records: list[Outgoing]) -> None:
    with pytest.raises(Missing, match=r"no longer has the state of east after batch 7"):
        read(*records)


def test_an_export_of_another_schema_is_told_as_that() -> None:
    record = msgspec.structs.replace(unpack(told(HELD)[0].value, StateRecord), of=1)
    foreign = msgspec.structs.replace(record, memory_schema=99)
    with pytest.raises(Missing, match=r"other schemas.*99"):
        read(told(HELD)[0]._replace(value=pack(foreign)))


def test_kafkas_clock_may_be_behind() -> None:
    topics = KeptTopics()
    topics.publish(told(HELD), AT - SKEW_MS)
    assert held_after(topics, BATCH, AT, "east") == HELD


def test_no_record_and_no_page_is_larger_than_it_may_be() -> None:
    pages = list(
        state_pages(ClusterExport(b"", {}, {}, {"n": b"x" * 3 * PAGE}).rows("east", AT), BATCH, 1)
    )
    values = [record.value for page in pages for record in page]
    assert max(map(len, values)) < PIECE + 1000
    assert max(sum(len(r.value) for r in page) for page in pages) < PAGE + PIECE + 1000
    assert {record.topic for page in pages for record in page} == {keys.STATE}


def test_what_nothing_is_held_by_is_refused() -> None:
    with pytest.raises(ValueError, match="elsewhere"):
        ClusterExport.of([("memory", b""), ("elsewhere/x", b"")])
    with pytest.raises(ValueError, match="memory"):
        ClusterExport.of([("snapshot/a:1", b"")])
