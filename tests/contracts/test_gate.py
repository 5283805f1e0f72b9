"""A store that may have forgotten something is closed until the job has put it right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec
import pytest
import redis

from sinks.errors import Closed, Damaged, Fenced, GenerationSpent, SinkError
from sinks.kafka.readable import ALL, Readable
from sinks.redis.cluster_gate import Closure, ClusterGate
from sinks.redis.hints import PlacementHints
from sinks.redis.leasing.lease import Renewal
from sinks.redis.leasing.leases import Leases
from sinks.redis.ownership_store import OwnershipStore
from sinks.redis.scripts import MOST_JOURNAL
from tests.contracts.asking import ABOVE, BOTH, BUNDLE, HALVES, broker, journal
from tests.support.opening import SureStore, close, indexed, keep_alive, let_in
from trimtab.model import Epoch
from trimtab.ownership import REPLICA_WAIT_MS, Event, State
from trimtab.wire import keys
from trimtab.wire.assertion import Assertion
from trimtab.wire.hints import Hints
from trimtab.wire.ownership import Candidate, Record

A, B = "a:8080", "b:8080"
LAST_ENTRY: Final = f"{2**64 - 1}-{2**64 - 1}"
"""After it a stream takes nothing."""
OWNED = Record(state=State.OWNED, epoch=Epoch(3, 7), owner=A, by="then")


@pytest.fixture
def gate(client: redis.Redis) -> ClusterGate:
    return ClusterGate(client)


@pytest.fixture
def closure(gate: ClusterGate, cluster: str) -> Closure:
    """A cluster that this server has never seen."""
    closed = gate.open(cluster, 5)
    assert closed is not None
    return closed


def test_an_unknown_cluster_stays_closed_until_it_is_rebuilt(
    gate: ClusterGate, closure: Closure, client: redis.Redis, cluster: str
) -> None:
    store = OwnershipStore(client)
    keep_alive(client, cluster, (A,))
    with pytest.raises(Closed):
        store.apply(cluster, broker(A, Event.CLAIM))

    assert gate.open(cluster, 5, closure.history) is None

    assert store.apply(cluster, broker(A, Event.CLAIM)).accepted


def test_it_is_not_opened_before_it_was_closed_for_long_enough(
    gate: ClusterGate, closure: Closure, client: redis.Redis, cluster: str
) -> None:
    early = gate.open(cluster, 5, closure.history, closed_for_ms=60_000)
    assert early is not None
    assert 0 < early.wait_ms <= 60_000

    seconds, _ = client.time()
    client.hset(keys.open_key(cluster), "rebuild_since", str(1000 * (seconds - 61)))
    assert gate.open(cluster, 5, closure.history, closed_for_ms=60_000) is None


def test_a_clock_that_went_back_keeps_it_closed_for_no_longer(
    gate: ClusterGate, closure: Closure, client: redis.Redis, cluster: str
) -> None:
    seconds, _ = client.time()
    client.hset(keys.open_key(cluster), "rebuild_since", str(1000 * (seconds + 3600)))

    again = gate.open(cluster, 5, closure.history, closed_for_ms=60_000)

    assert again is not None
    assert again.wait_ms <= 60_000 + REPLICA_WAIT_MS


def test_what_was_rebuilt_on_another_run_does_not_open_this_one(
    gate: ClusterGate, closure: Closure, cluster: str
) -> None:
    assert gate.open(cluster, 5, "f" * 40) == closure


def test_the_time_it_was_closed_counts_from_the_newest_run(
    gate: ClusterGate, closure: Closure, client: redis.Redis, cluster: str
) -> None:
    """Brokers that spoke to the run before must speak again."""
    client.hset(keys.open_key(cluster), mapping={"rebuild_on": "f" * 40, "rebuild_since": "1"})

    again = gate.open(cluster, 5, closure.history, closed_for_ms=60_000)

    assert again is not None
    assert again.wait_ms > 50_000


def test_the_next_job_goes_on_with_the_waiting(
    closure: Closure, client: redis.Redis, cluster: str
) -> None:
    client.hset(keys.open_key(cluster), "rebuild_since", "1")

    assert ClusterGate(client).open(cluster, 6, closure.history, closed_for_ms=60_000) is None
    with pytest.raises(Fenced):
        ClusterGate(client).open(cluster, 5, closure.history)


@pytest.mark.usefixtures("closure")
def test_the_newer_record_of_a_bundle_stands_after_a_restoration(
    gate: ClusterGate, client: redis.Redis, cluster: str
) -> None:
    newer = Record(state=State.FREE, epoch=Epoch(4, 1))
    older = Record(state=State.OWNED, epoch=Epoch(3, 9), owner=B)
    assert gate.restore(cluster, 5, {BUNDLE: OWNED, HALVES[0]: newer}, frozenset()) == 2

    assert gate.restore(cluster, 5, {BUNDLE: OWNED, HALVES[0]: older}, frozenset()) == 0

    store = OwnershipStore(client)
    assert store.records(cluster) == {BUNDLE: OWNED, HALVES[0]: newer}
    assert indexed(client, cluster) == sorted([BUNDLE, HALVES[0]])


@pytest.mark.usefixtures("closure")
def test_only_what_kafka_does_not_have_is_journalled(
    gate: ClusterGate, client: redis.Redis, cluster: str
) -> None:
    records = {BUNDLE: OWNED, HALVES[0]: Record(state=State.DELETED, epoch=Epoch(2, 2))}

    gate.restore(cluster, 5, records, {HALVES[0]})

    [change] = journal(client, cluster)
    assert (change.bundle, change.event, change.record) == (
        HALVES[0],
        Event.RESTORE,
        records[HALVES[0]],
    )
    assert indexed(client, cluster) == [BUNDLE]


@pytest.mark.usefixtures("closure")
def test_what_the_journal_does_not_take_is_put_into_it_later(
    gate: ClusterGate, client: redis.Redis, cluster: str
) -> None:
    client.xadd(keys.journal_key(cluster), {"change": "x"}, id=LAST_ENTRY)

    assert gate.restore(cluster, 5, {BUNDLE: OWNED}, {BUNDLE}) == 1

    assert client.smembers(keys.unjournalled_key(cluster)) == {BUNDLE.encode()}
    assert OwnershipStore(client).record(cluster, BUNDLE) == OWNED


@pytest.mark.parametrize("key", [keys.ownership_key, keys.bundles_key])
def test_an_open_store_whose_records_or_index_are_deleted_is_closed_at_once(
    client: redis.Redis, cluster: str, key: Callable[[str], str]
) -> None:
    """What remains would give one bundle, or two that overlap, to two brokers."""
    gate, store = let_in(client, cluster, 5), SureStore(client)
    keep_alive(client, cluster, [B])
    lease = Leases(client).renew(cluster, A, 1, 10_000)
    assert lease.renewal is Renewal.HELD
    assert store.apply(cluster, broker(A, Event.CLAIM)).accepted
    client.delete(key(cluster))
    wider = broker(B, Event.CLAIM, bundle=BOTH)

    for _ in range(2):
        with pytest.raises(Closed, match="are gone"):
            store.apply(cluster, wider)
        with pytest.raises(Closed, match="are gone"):
            store.apply_batch(cluster, [], generation=5, query_id="q", batch=1)
        assert Leases(client).renew(cluster, A, 1, 10_000).renewal is Renewal.ASSERT
        assert not gate.is_open(cluster)
        # As requests that came before it was noticed would leave it.
        client.hset(keys.ownership_key(cluster), ABOVE, msgspec.json.encode(OWNED))
        client.zadd(keys.bundles_key(cluster), {ABOVE: 0})

    with pytest.raises(GenerationSpent):
        gate.open(cluster, 5)
    closure = gate.open(cluster, 6)
    assert closure is not None
    assert gate.restore(cluster, 6, {BUNDLE: OWNED}, frozenset()) == (key is keys.ownership_key)
    gate.note_owned(cluster, 6, [BUNDLE])
    assert gate.open(cluster, 6, closure.history) is None
    assert gate.is_open(cluster)
    assert indexed(client, cluster) == [BUNDLE]


@pytest.mark.parametrize("key", [keys.ownership_key, keys.bundles_key])
def test_records_that_are_deleted_while_they_are_rebuilt_are_rebuilt_again(
    client: redis.Redis, cluster: str, key: Callable[[str], str]
) -> None:
    gate = ClusterGate(client)
    closure = gate.open(cluster, 5)
    assert closure is not None
    gate.restore(cluster, 5, {BUNDLE: OWNED}, frozenset())
    client.delete(key(cluster))

    again = gate.open(cluster, 5, closure.history)

    assert again is not None
    assert (again.history, again.since) == (closure.history, closure.since)
    assert gate.open(cluster, 5, closure.history) is None


def test_an_open_store_is_not_restored(client: redis.Redis, cluster: str) -> None:
    gate = let_in(client, cluster, 5)

    with pytest.raises(SinkError, match="not being rebuilt"):
        gate.restore(cluster, 5, {BUNDLE: OWNED}, frozenset())
    assert OwnershipStore(client).records(cluster) == {}


def given(client: redis.Redis, cluster: str, broker: str) -> set[str]:
    """What is noted as the broker's."""
    # Any: redis-py's answers are unions over protocols; ours is RESP2, bytes.
    names: Any = client.smembers(keys.owned_key(cluster, broker))
    return {name.decode() for name in names}


@pytest.mark.usefixtures("closure")
def test_index_and_owners_bundles_follow_what_is_restored(
    gate: ClusterGate, client: redis.Redis, cluster: str
) -> None:
    theirs = Record(state=State.OWNED, epoch=Epoch(4, 1), owner=B)
    ended = Record(state=State.DELETED, epoch=Epoch(4, 2))

    gate.restore(cluster, 5, {BUNDLE: OWNED}, frozenset())
    assert (given(client, cluster, A), given(client, cluster, B)) == ({BUNDLE}, set())
    gate.restore(cluster, 5, {BUNDLE: theirs}, frozenset())
    assert (given(client, cluster, A), given(client, cluster, B)) == (set(), {BUNDLE})
    gate.restore(cluster, 5, {BUNDLE: ended}, frozenset())
    assert (given(client, cluster, A), given(client, cluster, B)) == (set(), set())
    assert indexed(client, cluster) == []


@pytest.mark.usefixtures("closure")
def test_what_the_records_give_a_broker_is_noted_as_its_own(
    gate: ClusterGate, client: redis.Redis, cluster: str
) -> None:
    """A job of an older version wrote them, and noted nothing."""
    client.hset(keys.ownership_key(cluster), BUNDLE, msgspec.json.encode(OWNED))
    store = OwnershipStore(client)
    assert store.records_of(cluster, A) == {}

    gate.note_owned(cluster, 5, [BUNDLE, *HALVES])

    assert store.records_of(cluster, A) == {BUNDLE: OWNED}


Rebuilds = Callable[[ClusterGate, str], object]

REBUILDS: Final[list[Rebuilds]] = [
    lambda gate, cluster: gate.restore(cluster, 5, {BUNDLE: OWNED}, frozenset()),
    lambda gate, cluster: gate.note_owned(cluster, 5, [BUNDLE]),
]


@pytest.mark.usefixtures("closure")
@pytest.mark.parametrize("rebuild", REBUILDS, ids=["records", "notes"])
def test_what_is_being_rebuilt_on_another_history_is_left_alone(
    gate: ClusterGate, client: redis.Redis, cluster: str, rebuild: Rebuilds
) -> None:
    """The server was replaced since: what brokers said to the one before is not all."""
    client.hset(keys.open_key(cluster), "rebuild_on", "f" * 40)

    with pytest.raises(SinkError, match="not being rebuilt"):
        rebuild(gate, cluster)

    assert OwnershipStore(client).records(cluster) == {}


@pytest.mark.parametrize("rebuild", REBUILDS, ids=["records", "notes"])
@pytest.mark.parametrize("opened", ["replid", "run_id"], ids=["this version", "an older one"])
def test_what_a_job_has_opened_meanwhile_is_left_alone(
    closure: Closure, client: redis.Redis, cluster: str, rebuild: Rebuilds, opened: str
) -> None:
    client.hset(keys.open_key(cluster), opened, closure.history)

    with pytest.raises(SinkError, match="not being rebuilt"):
        rebuild(ClusterGate(client), cluster)


@pytest.mark.usefixtures("closure")
@pytest.mark.parametrize("rebuild", REBUILDS, ids=["records", "notes"])
def test_what_an_earlier_job_is_rebuilding_is_left_alone(
    gate: ClusterGate, client: redis.Redis, cluster: str, rebuild: Rebuilds
) -> None:
    client.hset(keys.open_key(cluster), "generation", "4")

    with pytest.raises(SinkError, match="not being rebuilt"):
        rebuild(gate, cluster)


@pytest.mark.parametrize("rebuild", REBUILDS, ids=["records", "notes"])
def test_a_rebuild_that_another_job_goes_on_with_is_that_jobs(
    closure: Closure, gate: ClusterGate, client: redis.Redis, cluster: str, rebuild: Rebuilds
) -> None:
    assert ClusterGate(client).open(cluster, 6, closure.history, closed_for_ms=60_000) is not None

    with pytest.raises(Fenced):
        rebuild(gate, cluster)


def test_nothing_is_noted_on_an_open_store(client: redis.Redis, cluster: str) -> None:
    gate = let_in(client, cluster, 5)

    with pytest.raises(SinkError, match="not being rebuilt"):
        gate.note_owned(cluster, 5, [BUNDLE])


def test_a_generation_is_spent_though_its_job_never_heard_that_it_was_let_in(
    client: redis.Redis, cluster: str
) -> None:
    """The answer was lost, and the server restarted: brokers may have seen epochs of it."""
    let_in(client, cluster, 5)
    close(client, cluster)

    with pytest.raises(GenerationSpent):
        ClusterGate(client).open(cluster, 5)


def test_a_transition_after_a_restoration_has_a_higher_epoch(
    gate: ClusterGate, closure: Closure, client: redis.Redis, cluster: str
) -> None:
    gate.restore(cluster, 5, {BUNDLE: OWNED}, frozenset())
    gate.open(cluster, 5, closure.history)

    record = OwnershipStore(client).apply(cluster, broker(A, Event.RELEASE, OWNED.epoch)).record

    assert record is not None
    assert record.epoch == Epoch(5, 8)


def test_only_what_was_said_to_this_run_is_heard(
    gate: ClusterGate, closure: Closure, client: redis.Redis, cluster: str
) -> None:
    now = Assertion(records={BUNDLE: OWNED})
    Leases(client).renew(cluster, A, 1, 10_000, now)
    client.set(keys.assertion_key(cluster, "f" * 40, B), b'{"records":{}}')

    assert gate.sources.assertions(cluster, closure.history) == {A: now}


@pytest.mark.parametrize("opened_to", [None, 4], ids=["never", "to an older job"])
def test_hints_wait_for_the_store_to_be_open(
    client: redis.Redis, cluster: str, opened_to: int | None
) -> None:
    """The job opens it: no other has taken over."""
    gate = ClusterGate(client) if opened_to is None else let_in(client, cluster, opened_to)

    with pytest.raises(Closed, match=str(opened_to or "no job")):
        gate.set_hints(cluster, 5, Hints(round=3, candidates=(Candidate(A, 0.5),), each=0.01))

    assert not client.exists(keys.hints_key(cluster))


def test_a_fenced_job_learns_by_whom(client: redis.Redis, cluster: str) -> None:
    let_in(client, cluster, 7)
    gate, store = ClusterGate(client), OwnershipStore(client)
    asked = (
        lambda: gate.open(cluster, 5),
        lambda: gate.set_hints(cluster, 5, Hints(round=3, candidates=(), each=0.01)),
        lambda: store.apply_batch(cluster, [], generation=5, query_id="q", batch=1),
    )
    for ask in asked:
        with pytest.raises(Fenced) as fenced:
            ask()
        assert fenced.value.generation == 7


@pytest.mark.parametrize(
    ("text", "heard"),
    [
        pytest.param(b"\xff\x00", Readable({}, (ALL,)), id="binary"),
        pytest.param(b'{"records":[]}', Readable({}, (ALL,)), id="no records"),
        pytest.param(b'{"records":' + b"[" * 200_000, Readable({}, (ALL,)), id="without end"),
        pytest.param(
            b'{"records":{"t/n/a":{"state":"Dreaming","epoch":[1,1]},"%s":%s},"v":1}'
            % (BUNDLE.encode(), msgspec.json.encode(OWNED)),
            Readable({BUNDLE: OWNED}, ("t/n/a",)),
            id="one record of another release",
        ),
    ],
)
def test_what_one_broker_said_and_cannot_be_read_costs_no_other_record(
    closure: Closure, client: redis.Redis, cluster: str, text: bytes, heard: Readable
) -> None:
    Leases(client).renew(cluster, A, 1, 10_000, Assertion(records={BUNDLE: OWNED}))
    client.set(keys.assertion_key(cluster, closure.history, B), text)
    said = ClusterGate(client).sources.heard(cluster, closure.history)
    assert said == {A: Readable({BUNDLE: OWNED}), B: heard}


def test_what_hundreds_of_brokers_said_is_heard(
    gate: ClusterGate, closure: Closure, client: redis.Redis, cluster: str
) -> None:
    names = {f"b{number}:8080" for number in range(105)}
    for name in names:
        Leases(client).renew(cluster, name, 1, 10_000, Assertion(records={}))
    assert gate.sources.heard(cluster, closure.history).keys() == names


@pytest.mark.parametrize(
    "stored",
    [
        pytest.param("{", id="no JSON"),
        pytest.param("7", id="no record"),
        pytest.param('{"epoch":["9",{}]}', id="no epoch"),
        pytest.param('{"state":"Owned","epoch":[1,1],"owner":{}}', id="no owner"),
        pytest.param('{"state":7,"epoch":[1,1]}', id="no state"),
        pytest.param('{"state":"Owned","epoch":[9000000000000000,1]}', id="a generation to come"),
    ],
)
@pytest.mark.usefixtures("closure")
def test_what_stands_and_cannot_be_a_record_gives_way(
    gate: ClusterGate, client: redis.Redis, cluster: str, stored: str
) -> None:
    """No request could ever change it."""
    client.hset(keys.ownership_key(cluster), BUNDLE, stored)
    assert gate.restore(cluster, 5, {BUNDLE: OWNED}, frozenset()) == 1
    assert OwnershipStore(client).records(cluster) == {BUNDLE: OWNED}


@pytest.mark.usefixtures("closure")
def test_a_record_whose_owner_is_null_stops_no_rebuild(
    gate: ClusterGate, client: redis.Redis, cluster: str
) -> None:
    text = '{"state":"Free","epoch":[1,1],"owner":null}'
    client.hset(keys.ownership_key(cluster), BUNDLE, text)

    gate.note_owned(cluster, 5, [BUNDLE])

    assert client.zscore(keys.bundles_key(cluster), BUNDLE) == 0.0
    assert gate.restore(cluster, 5, {BUNDLE: OWNED}, frozenset()) == 1


def test_what_is_no_number_of_replicas_counts_as_some(
    gate: ClusterGate, client: redis.Redis, cluster: str
) -> None:
    """Brokers may write it; the job looks at all clusters before it begins."""
    client.hset(keys.replicas_key(cluster), "online", "many")
    assert gate.was_replicated(cluster)


@pytest.mark.usefixtures("closure")
def test_a_rebuild_fills_the_journal_no_further_than_requests_do(
    gate: ClusterGate, client: redis.Redis, cluster: str
) -> None:
    with client.pipeline() as together:
        for _ in range(MOST_JOURNAL):
            together.xadd(keys.journal_key(cluster), {"x": "y"})
        together.execute()

    gate.restore(cluster, 5, {BUNDLE: OWNED}, {BUNDLE})

    assert client.xlen(keys.journal_key(cluster)) == MOST_JOURNAL
    assert client.smembers(keys.unjournalled_key(cluster)) == {BUNDLE.encode()}


@pytest.mark.usefixtures("closure")
def test_an_index_that_was_deleted_is_made_again(
    gate: ClusterGate, client: redis.Redis, cluster: str
) -> None:
    gate.restore(cluster, 5, {BUNDLE: OWNED}, frozenset())
    client.delete(keys.bundles_key(cluster), keys.owned_key(cluster, A))

    gate.note_owned(cluster, 5, [BUNDLE])

    assert indexed(client, cluster) == [BUNDLE]
    assert client.smembers(keys.owned_key(cluster, A)) == {BUNDLE.encode()}


def test_new_hints_begin_a_new_count(client: redis.Redis, cluster: str) -> None:
    gate = let_in(client, cluster, 5)
    hints = Hints(round=3, candidates=(Candidate(A, 0.5),), each=0.01)
    counts = keys.placed_key(cluster), keys.tallies_key(cluster)
    for key in counts:
        client.hset(key, A, 9)

    gate.set_hints(cluster, 5, hints)

    assert client.get(keys.hints_key(cluster)) is not None
    assert not client.exists(*counts)
    let_in(client, cluster, 6)
    with pytest.raises(Fenced):
        gate.set_hints(cluster, 5, hints)


@pytest.mark.parametrize("spoiled", [False, True])
def test_groups_are_stored_apart_and_replaced_where_they_changed(
    client: redis.Redis, cluster: str, spoiled: bool
) -> None:
    gate, reader = let_in(client, cluster, 5), PlacementHints(client)
    many = tuple(f"t/{i}" for i in range(3000))
    hints = Hints(round=3, candidates=(), each=0.01, groups={"g": many, "h": ("t/a", "t/b")})
    gate.set_hints(cluster, 5, hints)
    assert reader.group_of(cluster, "t/2999") == ("g", many)
    assert reader.group_of(cluster, "t/b") == ("h", ("t/a", "t/b"))
    assert reader.group_of(cluster, "t/none") is None
    assert len(client.get(keys.hints_key(cluster)) or b"") < 100

    if spoiled:
        client.set(keys.groups_key(cluster), "x")
        with pytest.raises(Damaged, match="writes it again"):
            reader.group_of(cluster, "t/a")
    gate.set_hints(cluster, 5, msgspec.structs.replace(hints, groups={"h": ("t/a",)}))
    assert reader.group_of(cluster, "t/a") == ("h", ("t/a",))
    assert reader.group_of(cluster, "t/b") is reader.group_of(cluster, "t/1") is None


def test_groups_that_did_not_change_are_not_written_again(
    client: redis.Redis, cluster: str
) -> None:
    gate = let_in(client, cluster, 5)
    hints = Hints(round=3, candidates=(), each=0.01, groups={"h": ("t/a", "t/b")})
    gate.set_hints(cluster, 5, hints)
    client.hset(keys.groups_key(cluster), "note", "kept")
    gate.set_hints(cluster, 5, hints)
    assert client.hget(keys.groups_key(cluster), "note") == b"kept"
