"""Who may ask for what: sessions, clocks, names that are no ranges, jobs of another version."""

from __future__ import annotations

import msgspec
import pytest
import redis

from sinks.errors import Closed
from sinks.redis.bundle_index import BundleIndex
from sinks.redis.cluster_gate import ClusterGate
from sinks.redis.leasing.lease import Lease, Renewal
from sinks.redis.leasing.lease_scan import LeaseScan
from sinks.redis.leasing.leases import Leases
from sinks.redis.ownership_store import OwnershipStore
from tests.contracts.asking import BUNDLE, GENERATION, HALVES, broker
from tests.contracts.conftest import BROKERS
from tests.support.opening import indexed, let_lapse, server_ms
from trimtab.model import LONGEST_NAME, NO_EPOCH, is_bundle, namespace_of
from trimtab.ownership import LONGEST_LEASE_MS, Event
from trimtab.wire import keys
from trimtab.wire.ownership import Candidate, Refused, Transition

A, B, _ = BROKERS


def test_only_the_process_that_holds_the_lease_speaks_for_its_broker(
    store: OwnershipStore, client: redis.Redis, cluster: str
) -> None:
    client.set(keys.lease_key(cluster, A), "+7")
    claim = broker(A, Event.CLAIM)

    for session in (6, 8):
        refused = store.apply(cluster, msgspec.structs.replace(claim, session=session))
        assert refused.reason is Refused.NO_LEASE

    assert store.apply(cluster, msgspec.structs.replace(claim, session=7)).accepted


@pytest.mark.parametrize("ends", ["its time is over", "it gives it up", "a clock went back"])
def test_nothing_is_taken_from_a_broker_whose_lease_was_deleted_until_it_would_have_ended(
    store: OwnershipStore, client: redis.Redis, cluster: str, ends: str
) -> None:
    """It learns of that at its next renewal."""
    client.delete(keys.lease_key(cluster, A))
    leases = Leases(client)
    leases.renew(cluster, A, 7, LONGEST_LEASE_MS)
    claimed = store.apply(cluster, broker(A, Event.CLAIM, session=7)).record
    assert claimed is not None
    client.delete(keys.lease_key(cluster, A))
    lookup = broker(B, Event.ASSIGN, claimed.epoch, broker=B)
    lost = msgspec.structs.replace(lookup, id="lost", event=Event.LOSE, actor=None, broker=None)

    assert store.apply(cluster, lookup).reason is Refused.OWNER_LIVES
    done = store.apply_batch(cluster, [lost], generation=GENERATION, query_id="q", batch=1)
    assert done.outcomes[0].reason is Refused.OWNER_LIVES

    if ends == "its time is over":
        let_lapse(client, cluster, A)
    elif ends == "it gives it up":
        assert leases.renew(cluster, A, 7, 0).renewal is Renewal.RELEASED
    else:
        later = server_ms(client) + 2 * LONGEST_LEASE_MS
        client.hset(keys.sessions_key(cluster), A, f"7 {later}")
    assert store.apply(cluster, lookup).accepted


@pytest.mark.parametrize("lease", ["0", "1700000000000"], ids=["ended", "older agent"])
def test_a_broker_without_a_process_that_can_serve_is_given_nothing(
    store: OwnershipStore, client: redis.Redis, cluster: str, lease: str
) -> None:
    client.set(keys.lease_key(cluster, B), lease)
    asked = Transition(id="x", bundle=BUNDLE, event=Event.ASSIGN, expect=NO_EPOCH, actor=A)

    to = store.apply(cluster, msgspec.structs.replace(asked, broker=B))
    best = store.apply(
        cluster,
        msgspec.structs.replace(asked, candidates=(Candidate(B, 0.1), Candidate(A, 0.9))),
    )

    assert to.reason is Refused.NO_LEASE
    assert best.record is not None
    assert best.record.owner == A


@pytest.mark.parametrize("off_ms", [None, -600, 900, 30_000])
def test_nothing_is_taken_where_the_callers_clock_does_not_agree(
    store: OwnershipStore, client: redis.Redis, cluster: str, off_ms: int | None
) -> None:
    plain = OwnershipStore(client)
    owned = store.apply(cluster, broker(A, Event.CLAIM)).record
    assert owned is not None
    let_lapse(client, cluster, A)
    taken = Transition(
        id="x", bundle=BUNDLE, event=Event.ASSIGN, expect=owned.epoch, actor=B, broker=B
    )
    told = None if off_ms is None else server_ms(client) + off_ms

    assert plain.apply(cluster, taken, told).reason is Refused.CLOCK_IN_DOUBT
    lost = msgspec.structs.replace(taken, event=Event.LOSE, actor=None, broker=None)
    told = None if off_ms is None else server_ms(client) + off_ms
    [outcome] = plain.apply_batch(
        cluster, [lost], generation=GENERATION, query_id="q", batch=9, server_ms=told
    ).outcomes
    assert outcome.reason is Refused.CLOCK_IN_DOUBT

    assert plain.apply(cluster, taken, server_ms(client)).accepted


NO_RANGES = (
    "t/ns/0x20000000_x",
    "t/ns/0x20000000",
    "t/ns/0x2000000_0x40000000",
    "t/ns/0x20000000_0x400000000",
    "t/ns/0x2000000A_0x40000000",
    "t/ns/0x40000000_0x20000000",
    "t/ns/0x20000000_0x20000000",
    "ns/0x20000000_0x40000000",
    "t/n s/0x20000000_0x40000000",
    "t/n\x1b[2J/0x20000000_0x40000000",
    "t/n\x00/0x20000000_0x40000000",
    "t\x7f/n/0x20000000_0x40000000",
    "t/ns/0x20000000_0x40000000 ",
    "/t/ns/0x20000000_0x40000000",
    f"t/{'n' * (LONGEST_NAME - 23)}/0x20000000_0x40000000",
    f"t/{'é' * (LONGEST_NAME // 2)}/0x20000000_0x40000000",
)


@pytest.mark.parametrize("name", NO_RANGES)
def test_what_is_no_range_is_no_bundle(
    store: OwnershipStore, client: redis.Redis, cluster: str, name: str
) -> None:
    claim = msgspec.structs.replace(broker(A, Event.CLAIM), bundle=name)

    assert store.apply(cluster, claim).reason is Refused.NOT_TILING
    assert indexed(client, cluster) == []


def test_the_longest_name_is_a_bundle(store: OwnershipStore, cluster: str) -> None:
    name = f"t/{'n' * (LONGEST_NAME - 24)}/0x20000000_0x40000000"
    assert len(name) == LONGEST_NAME
    claim = msgspec.structs.replace(broker(A, Event.CLAIM), bundle=name)
    assert store.apply(cluster, claim).accepted


@pytest.mark.parametrize(
    "between",
    [
        *NO_RANGES,
        "t/ns/0x20000000_0x40000000/0x00000000_0xffffffff",
        "t/ns/0x30000000_0x40000000/0x00000000_0xffffffff",
        "t/ns/0x20000000_0x40000000/0x00000000_0x00000001",
    ],
)
def test_an_overlap_is_seen_whatever_stands_between_in_the_index(
    store: OwnershipStore, client: redis.Redis, cluster: str, between: str
) -> None:
    wide, narrow = "t/ns/0x10000000_0x50000000", "t/ns/0x28000000_0x30000000"
    for first, second in ((wide, narrow), (narrow, wide)):
        client.zrem(keys.bundles_key(cluster), wide, narrow, between)
        client.hdel(keys.ownership_key(cluster), wide, narrow)
        claim = msgspec.structs.replace(broker(A, Event.CLAIM), bundle=first, id=first)
        assert store.apply(cluster, claim).accepted
        client.zadd(keys.bundles_key(cluster), {between: 0})

        claim = msgspec.structs.replace(broker(A, Event.CLAIM), bundle=second, id=second)
        assert store.apply(cluster, claim).reason is Refused.NOT_TILING


def test_a_brokers_own_bundles_are_found_without_reading_all(
    store: OwnershipStore, cluster: str
) -> None:
    for bundle in HALVES:
        claim = msgspec.structs.replace(broker(A, Event.CLAIM), bundle=bundle, id=bundle)
        assert store.apply(cluster, claim).accepted
    first, second = HALVES
    record = store.record(cluster, first)
    assert record is not None
    given = broker(A, Event.RELEASE, record.epoch)
    assert store.apply(cluster, msgspec.structs.replace(given, bundle=first, id="r")).accepted

    assert list(store.records_of(cluster, A)) == [second]
    assert list(store.records_of(cluster, A, [first, "t/ns/0x00000001_0x00000002"])) == [*HALVES]
    assert store.records_of(cluster, B) == {}


@pytest.mark.parametrize(
    "name", [b"\xff\xfe", b"t/ns/0x\xff", b"nonsense", b"t/ns/0x00000000_0x0000000"]
)
def test_what_a_broker_adds_to_its_bundles_beside_the_script_is_no_bundle(
    store: OwnershipStore, client: redis.Redis, cluster: str, name: bytes
) -> None:
    client.sadd(keys.owned_key(cluster, A), name)
    client.hset(keys.ownership_key(cluster), name, '{"state":"Owned","epoch":[1,1],"owner":"a"}')
    assert store.apply(cluster, broker(A, Event.CLAIM)).accepted

    assert list(store.records_of(cluster, A)) == [BUNDLE]


@pytest.mark.parametrize("span", [b"0x\xff", b"0x00000000_0x0000000", b"0x80000000_0x00000000"])
def test_what_a_broker_adds_to_the_index_beside_the_script_is_no_bundle(
    store: OwnershipStore, client: redis.Redis, cluster: str, span: bytes
) -> None:
    namespace = namespace_of(BUNDLE)
    assert store.apply(cluster, broker(A, Event.CLAIM)).accepted
    client.zadd(keys.bundles_key(cluster), {f"{namespace}/".encode() + span: 0})

    assert BundleIndex(client).bundles(cluster, namespace) == [BUNDLE]


def test_a_job_of_an_older_version_closes_the_store_to_agents_of_this_one(
    store: OwnershipStore, client: redis.Redis, cluster: str
) -> None:
    client.hset(keys.open_key(cluster), "run_id", client.info("server")["run_id"])

    with pytest.raises(Closed, match="upgrade the job first"):
        store.apply(cluster, broker(A, Event.CLAIM))
    assert not ClusterGate(client).is_open(cluster)


@pytest.mark.usefixtures("store")
def test_where_the_clock_may_have_jumped_a_process_waits_a_whole_lease_for_one_that_may_serve(
    client: redis.Redis, cluster: str
) -> None:
    leases, lease_scan = Leases(client), LeaseScan(client)
    new = "new:8080"

    def asks(session: int, asked_for_ms: int) -> Lease:
        return leases.renew(cluster, new, session, 8_000, asked_for_ms=asked_for_ms)

    assert asks(1, 0).renewal is Renewal.HELD
    let_lapse(client, cluster, new)
    assert asks(1, 0).renewal is Renewal.HELD
    let_lapse(client, cluster, new)

    waits = asks(2, 3_000)
    assert (waits.renewal, waits.detail, waits.ms) == (Renewal.WAITING, "", 7_000)
    assert asks(1, 0).renewal is Renewal.SUPERSEDED
    lease_scan.vouch([cluster], server_ms(client) + 30_000)
    assert asks(2, 3_000).renewal is Renewal.WAITING
    assert asks(2, 10_000).renewal is Renewal.HELD
    let_lapse(client, cluster, new)
    lease_scan.vouch([cluster], server_ms(client))
    assert asks(3, 0).renewal is Renewal.HELD
    leases.renew(cluster, new, 3, 0)
    client.delete(keys.clock_key(cluster), keys.lease_key(cluster, new))
    assert asks(4, 0).renewal is Renewal.HELD


NEW = "new:8080"


def asks(client: redis.Redis, cluster: str, session: int) -> Lease:
    """For the first time."""
    return Leases(client).renew(cluster, NEW, session, 8_000, asked_for_ms=0)


@pytest.mark.usefixtures("store")
@pytest.mark.parametrize(("ago_ms", "believed"), [(0, True), (8_000, False), (-30_000, False)])
def test_what_was_said_of_the_clock_is_believed_for_a_second(
    client: redis.Redis, cluster: str, ago_ms: int, believed: bool
) -> None:
    """Where the clock went back the note outlasts its time; then it goes forward again."""
    asks(client, cluster, 1)
    let_lapse(client, cluster, NEW)
    client.set(keys.clock_key(cluster), server_ms(client) - ago_ms)

    found = asks(client, cluster, 2).renewal

    assert found is (Renewal.HELD if believed else Renewal.WAITING)


def test_what_is_said_of_the_clock_outlasts_no_cluster(client: redis.Redis, cluster: str) -> None:
    LeaseScan(client).vouch([cluster], server_ms(client))

    assert client.pttl(keys.clock_key(cluster)) in range(1, 1_001)


def test_a_server_that_forgot_its_scripts_hears_of_its_clock_for_each_cluster(
    client: redis.Redis, cluster: str
) -> None:
    clusters = [f"{cluster}-{name}" for name in "ab"]
    client.script_flush()

    LeaseScan(client).vouch(clusters, server_ms(client))

    assert all(client.exists(keys.clock_key(each)) for each in clusters)


@pytest.mark.usefixtures("store")
def test_a_wait_that_is_over_by_the_servers_clock_alone_is_not_over(
    client: redis.Redis, cluster: str
) -> None:
    asks(client, cluster, 1)
    asks(client, cluster, 2)
    client.set(keys.successor_key(cluster, NEW), f"2 {server_ms(client) - 1}")

    waits = asks(client, cluster, 2)

    assert (waits.renewal, waits.ms) == (Renewal.WAITING, 10_000)
    LeaseScan(client).vouch([cluster], server_ms(client))
    assert asks(client, cluster, 2).renewal is Renewal.HELD


@pytest.mark.usefixtures("store")
def test_a_clock_that_went_back_makes_no_wait_longer_than_a_lease(
    client: redis.Redis, cluster: str
) -> None:
    asks(client, cluster, 1)
    asks(client, cluster, 2)
    client.set(keys.successor_key(cluster, NEW), f"2 {server_ms(client) + 3_600_000}")

    assert asks(client, cluster, 2).ms == 10_000
    _, over = client.get(keys.successor_key(cluster, NEW)).split()  # type: ignore[union-attr]  # bytes
    assert int(over) <= server_ms(client) + 10_000


@pytest.mark.parametrize("space", ["\u00a0", "\u2003", "\x1f", "\n", "\t", " "])
def test_a_name_is_a_bundles_to_the_script_where_it_is_to_its_readers(
    store: OwnershipStore, cluster: str, space: str
) -> None:
    """Otherwise it would be served and never be journalled."""
    name = f"tenant/n{space}s/0x00000000_0xffffffff"
    claim = Transition(
        id="claim", bundle=name, event=Event.CLAIM, expect=NO_EPOCH, broker=A, actor=A
    )

    assert store.apply(cluster, claim).accepted == is_bundle(name)
