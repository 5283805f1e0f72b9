"""Explanations of the last rounds are kept, found by subject, and forgotten in turn."""

from __future__ import annotations

import msgspec
import pytest
import redis

from sinks.errors import Closed, Fenced
from sinks.redis.answers.explanations import Explanations
from tests.contracts.asking import GENERATION
from tests.support.explanations import explanation, stored
from tests.support.opening import let_in
from trimtab.wire import keys
from trimtab.wire.explanation import Nearest, Option

BUNDLE, OTHER, BROKER = "t/ns/0x00000000_0x80000000", "t/ns/0x80000000_0xffffffff", "a:8080"


@pytest.fixture
def kept(client: redis.Redis, cluster: str) -> Explanations:
    let_in(client, cluster, GENERATION)
    return Explanations(client)


def write(kept: Explanations, cluster: str, number: int, *subjects: str, keep: int = 100) -> None:
    told = [explanation(subject, number) for subject in subjects]
    kept.write(GENERATION, stored(cluster, number, *told, keep=keep))


def test_an_explanation_comes_back_as_it_was(kept: Explanations, cluster: str) -> None:
    whole = explanation(
        BUNDLE,
        why='a:8080 at 71.2 %, "heiß"',
        usage={"a:8080": (0.712, 0.629)},
        range=(0.241, 0.048),
        options=(Option(broker="b:8080", usage=0.5, chosen=True),),
        nearest=Nearest(setting="planner.target", now=0.05, then=0.2411, so_that="it rests"),
    )
    kept.write(GENERATION, stored(cluster, 1, whole))
    assert kept.read(cluster, BUNDLE).explanation == whole


def test_the_newest_round_that_mentions_a_subject_answers(kept: Explanations, cluster: str) -> None:
    write(kept, cluster, 7, BUNDLE, BROKER)
    write(kept, cluster, 8, BUNDLE)
    write(kept, cluster, 9, BROKER)
    found = kept.read(cluster, BUNDLE)
    assert found.explanation == explanation(BUNDLE, 8)
    assert (found.rounds, found.kept) == ((8, 7), (7, 9))
    assert kept.read(cluster, BUNDLE, 7).explanation == explanation(BUNDLE, 7)
    assert kept.read(cluster, BUNDLE, 9).explanation is None


def test_who_was_never_mentioned_is_told_what_is_kept(kept: Explanations, cluster: str) -> None:
    assert kept.read(cluster, BUNDLE) == (None, (), None)
    write(kept, cluster, 3, BROKER)
    assert kept.read(cluster, BUNDLE) == (None, (), (3, 3))


def test_the_oldest_rounds_are_forgotten_with_their_place_in_the_index(
    kept: Explanations, client: redis.Redis, cluster: str
) -> None:
    write(kept, cluster, 1, BUNDLE, OTHER)
    write(kept, cluster, 2, BUNDLE)
    write(kept, cluster, 3, BUNDLE, BROKER, keep=2)
    assert kept.read(cluster, BUNDLE).rounds == (3, 2)
    assert kept.read(cluster, OTHER) == (None, (), (2, 3))
    assert not client.exists(keys.explanations_key(cluster, 1))
    write(kept, cluster, 4, BROKER, keep=1)
    assert kept.read(cluster, BROKER).rounds == (4,)
    assert client.hgetall(keys.whys_key(cluster)) == {BROKER.encode(): b"4"}


def test_a_batch_that_is_repeated_leaves_the_same(
    kept: Explanations, client: redis.Redis, cluster: str
) -> None:
    def contents() -> object:
        names = sorted(client.scan_iter(f"{keys.whys_key(cluster)}*"))
        return [client.dump(name) for name in names]

    write(kept, cluster, 1, BUNDLE, BROKER)
    write(kept, cluster, 2, BUNDLE)
    before = contents()
    write(kept, cluster, 2, BUNDLE)
    assert contents() == before


def test_rounds_that_count_from_the_start_again_push_out_the_older_ones(
    kept: Explanations, cluster: str
) -> None:
    """A new checkpoint counts from 1; what is newer is told by the time and not by the number."""
    for number in (501, 502):
        kept.write(GENERATION, stored(cluster, number, explanation(BUNDLE, number), keep=2))
    changed = stored(cluster, 1, explanation(BUNDLE, 1), keep=2)
    kept.write(GENERATION, msgspec.structs.replace(changed, at=60_000 * 503))
    found = kept.read(cluster, BUNDLE)
    assert (found.rounds, found.kept) == ((1, 502), (502, 1))


def test_the_last_round_at_a_time_is_found(kept: Explanations, cluster: str) -> None:
    for number in (3, 4, 6):
        write(kept, cluster, number, BUNDLE)
    found = [kept.round_until(cluster, 60_000 * minute) for minute in (2, 3, 5, 9)]
    assert found == [None, 3, 4, 6]
    assert kept.round_until(cluster, 60_000 * 4 - 1) == 3
    assert kept.round_until("nowhere", 60_000) is None


def test_the_index_names_twenty_rounds_of_a_subject(kept: Explanations, cluster: str) -> None:
    for number in range(1, 31):
        write(kept, cluster, number, BUNDLE)
    assert kept.read(cluster, BUNDLE).rounds == tuple(range(30, 10, -1))
    assert kept.read(cluster, BUNDLE, 2).explanation == explanation(BUNDLE, 2)


@pytest.mark.parametrize("opened_to", [None, GENERATION - 1], ids=["never", "to an older job"])
def test_of_a_cluster_that_the_job_has_not_opened_nothing_is_kept(
    client: redis.Redis, cluster: str, opened_to: int | None
) -> None:
    """Anybody can make up a cluster; none of them means that a newer job has taken over."""
    if opened_to is not None:
        let_in(client, cluster, opened_to)
    with pytest.raises(Closed, match=str(opened_to or "no job")):
        write(Explanations(client), cluster, 1, BUNDLE)
    assert not client.exists(keys.whys_key(cluster))


def test_a_job_that_was_taken_over_writes_nothing(
    kept: Explanations, client: redis.Redis, cluster: str
) -> None:
    let_in(client, cluster, GENERATION + 1)
    with pytest.raises(Fenced, match=f"generation {GENERATION + 1},"):
        write(kept, cluster, 1, BUNDLE)
    assert kept.read(cluster, BUNDLE) == (None, (), None)


def test_nothing_is_left_of_a_cluster_that_is_given_up(
    kept: Explanations, client: redis.Redis, cluster: str
) -> None:
    write(kept, cluster, 1, BUNDLE)
    written = list(client.scan_iter(f"{keys.whys_key(cluster)}*"))
    assert len(written) == 3
    for key in written:
        assert 0 < client.ttl(key) <= 7 * 86_400


def test_an_answer_takes_two_trips_however_much_is_kept(
    kept: Explanations, client: redis.Redis, cluster: str
) -> None:
    for number in range(1, 101):
        names = [f"t/ns{n}/0x00000000_0xffffffff" for n in range(200)]
        write(kept, cluster, number, *names)
    before = client.info("stats")["total_commands_processed"]
    found = kept.read(cluster, "t/ns7/0x00000000_0xffffffff")
    assert found.explanation is not None
    # Three in one trip, one in the other, and the question itself.
    assert client.info("stats")["total_commands_processed"] - before == 5
