"""Which recorded batches a replay runs, and from what."""

from __future__ import annotations

import msgspec
import pytest

from simulation.replay.batches import Contradiction
from simulation.replay.recorded import Missing
from simulation.replay.span import Ambiguous, Asked, Bound, Span, batches_of, find_span
from sinks.kafka.publisher import Outgoing
from tests.support.kept_topics import KeptTopics
from tests.support.recorded_batches import START, batch
from trimtab.wire import keys
from trimtab.wire.rounds import BatchRecord


def recorded(*batches: BatchRecord, dropped: int = 0) -> KeptTopics:
    """On trimtab.rounds, of which the oldest are gone."""
    topics = KeptTopics()
    for each in batches:
        topics.publish([Outgoing(keys.ROUNDS, "", msgspec.json.encode(each))], each.at)
    topics.low[keys.ROUNDS] = dropped
    return topics


def numbers(since: int, until: int, cluster: str | None = None, query: str | None = None) -> Asked:
    return Asked(Bound(since, is_number=True), Bound(until, is_number=True), query, cluster)


def starts(span: Span) -> dict[str, int] | None:
    return None if span.starts is None else {c: head.batch for c, head in span.starts.items()}


def test_each_cluster_starts_from_its_newest_export_before_the_span() -> None:
    topics = recorded(
        batch(0, exported="ew"),
        batch(1, "e", "e"),
        batch(2, "w"),
        batch(3, "e", "w"),
        batch(4, "ew", "e"),
        batch(5, "ew"),
        batch(6, "ew", "ew"),
    )
    span = find_span(topics, numbers(4, 5))
    assert (span.first, span.last) == (4, 5)
    assert starts(span) == {"e": 1, "w": 3}
    assert [each.batch for each in batches_of(topics, span)] == [1, 2, 3, 4, 5]
    assert starts(find_span(topics, numbers(4, 5, cluster="w"))) == {"w": 3}


@pytest.mark.parametrize(
    "value", [b"junk", b"", b"[]", b"{}", b"\xff", b'{"query":1}', b"[" * 5000 + b"]" * 5000]
)
def test_what_no_job_has_recorded_is_left_out(value: bytes) -> None:
    """One such record would stop every replay until retention removes it."""
    topics = recorded(batch(0), batch(1, "e"))
    topics.publish([Outgoing(keys.ROUNDS, "", value)], START + 1500)
    topics.publish([Outgoing(keys.ROUNDS, "", msgspec.json.encode(batch(2, "e")))], START + 2000)
    span = find_span(topics, numbers(1, 2))
    assert [each.batch for each in batches_of(topics, span)] == [0, 1, 2]


def test_a_span_by_time_is_the_batches_with_these_timestamps() -> None:
    topics = recorded(*(batch(number, "e", "e") for number in range(6)))
    span = find_span(topics, Asked(Bound(START + 1001), Bound(START + 3000)))
    assert (span.first, span.last) == (2, 3)


def test_without_an_export_all_start_from_the_first_batch() -> None:
    topics = recorded(batch(0), batch(1, "e"), batch(2, "e", "w"), batch(3, "ew"))
    span = find_span(topics, numbers(2, 3))
    assert starts(span) is None
    assert [each.batch for each in batches_of(topics, span)] == [0, 1, 2, 3]


def test_a_query_of_which_the_first_batch_is_recorded_is_whole_whatever_came_before() -> None:
    topics = recorded(batch(9, query="old"), batch(0), batch(1, "e"), dropped=1)
    assert starts(find_span(topics, numbers(1, 1))) is None


def test_a_cluster_that_began_in_the_span_starts_from_its_first_export() -> None:
    topics = recorded(
        batch(0), batch(1, "e", "e"), batch(2, "e"), batch(3, "e", "w"), batch(4, "ew"), dropped=1
    )
    assert starts(find_span(topics, numbers(2, 4))) == {"e": 1, "w": 3}


def test_what_no_export_leads_to_is_missing() -> None:
    topics = recorded(batch(0), batch(1, "e"), batch(2, "e", "e"), batch(3, "e"), dropped=1)
    with pytest.raises(Missing, match=r"nothing was exported of e before .* batches after 2"):
        find_span(topics, numbers(1, 3))
    assert starts(find_span(topics, numbers(3, 3))) == {"e": 2}


def test_a_span_that_was_not_recorded_is_refused_with_what_there_is() -> None:
    with pytest.raises(Missing, match=r"batches 3 .* to 4 .* of query q"):
        find_span(recorded(batch(3), batch(4)), numbers(7, 9))


def test_a_kafka_on_which_nothing_is_recorded_is_told() -> None:
    with pytest.raises(Missing, match=r"no batch is recorded on trimtab.rounds: has a job run"):
        find_span(recorded(), numbers(1, 2))
    with pytest.raises(Missing, match="no batch of query z is recorded"):
        find_span(recorded(batch(1, "e")), numbers(1, 2, query="z"))


def test_a_span_without_a_round_is_nothing_to_compare() -> None:
    topics = recorded(batch(0, "e", "e"), batch(1, "e"), batch(2))
    with pytest.raises(Missing, match=r"no round of w ran in batches 1 .* there is e"):
        find_span(topics, numbers(1, 2, cluster="w"))
    with pytest.raises(Missing, match="no round ran"):
        find_span(topics, numbers(2, 2))


def test_of_several_queries_one_must_be_named() -> None:
    topics = recorded(batch(1, "e", query="a"), batch(1, "e", query="b"))
    with pytest.raises(Ambiguous) as caught:
        find_span(topics, numbers(1, 1))
    assert [line.split(":")[0] for line in str(caught.value).splitlines()[1:]] == [
        "--query a",
        "--query b",
    ]
    assert find_span(topics, numbers(1, 1, query="b")).query == "b"


def test_of_several_queries_a_cluster_names_the_one_that_ran_it() -> None:
    topics = recorded(
        batch(1, "e", query="a"), batch(1, "w", query="b"), batch(2, "w", query="c"), batch(0)
    )
    assert find_span(topics, numbers(1, 1, cluster="e")).query == "a"
    assert find_span(topics, numbers(1, 1, cluster="w")).query == "b"
    with pytest.raises(Ambiguous, match=r"(?s)query b: .*, w.*query c: .*, w"):
        find_span(topics, numbers(1, 2, cluster="w"))


def test_a_batch_that_was_repeated_counts_once() -> None:
    topics = recorded(batch(0), batch(1, "e"), batch(1, "e", generation=2), batch(2))
    span = find_span(topics, numbers(0, 2))
    assert [each.batch for each in batches_of(topics, span)] == [0, 1, 2]


def test_an_older_checkpoint_that_was_put_back_is_a_contradiction() -> None:
    topics = recorded(batch(0), batch(1), batch(2, "e"), batch(1, "e"), batch(2))
    with pytest.raises(Contradiction, match="an older checkpoint was put back"):
        list(batches_of(topics, find_span(topics, numbers(0, 2))))
