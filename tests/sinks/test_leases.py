"""A lease lives until it runs out; on a closed store only a broker that has spoken renews it."""

from __future__ import annotations

from collections.abc import Callable
from importlib.resources import files
from typing import Any

import msgspec
import pytest
import redis
from redis.client import Pipeline

from deploy.redis_server import RedisServer
from sinks.errors import Damaged, Misconfigured, StoreUnavailable
from sinks.redis.cluster_gate import ClusterGate
from sinks.redis.leasing.lease import FOR_THE_NEXT, NO_SESSION, Lease, Renewal
from sinks.redis.leasing.leases import Leases
from sinks.redis.leasing.unscripted import _replicas
from sinks.redis.scripts import ASSERTION_KEPT_MS, lease_script
from sinks.redis.server.connections import redis_client
from tests.support.opening import close, let_in, let_lapse, server_ms
from trimtab.model import Epoch
from trimtab.ownership import LONGEST_LEASE_MS, REPLICA_LAG_S, REPLICA_WAIT_MS, State
from trimtab.wire import keys
from trimtab.wire.assertion import Assertion
from trimtab.wire.ownership import Record

A = "a:8080"
LONG_MS = 8_000


@pytest.fixture
def leases(client: redis.Redis, cluster: str) -> Leases:
    """On an open store."""
    let_in(client, cluster, 1)
    return Leases(client)


def answered(lease: Lease) -> tuple[Renewal, str, int]:
    """Without what differs from run to run."""
    return lease.renewal, lease.detail, lease.ms


def test_renewing_tells_whose_lease_it_was(leases: Leases, cluster: str) -> None:
    assert answered(leases.renew(cluster, A, 1, LONG_MS)) == (Renewal.HELD, "", LONG_MS)
    assert answered(leases.renew(cluster, A, 1, LONG_MS)) == (Renewal.HELD, "1", LONG_MS)


def test_an_older_process_waits_as_well_where_the_clock_may_have_ended_the_laters_lease(
    leases: Leases, client: redis.Redis, cluster: str
) -> None:
    """The later one may serve on; or it was killed, and its machine's clock was ahead."""
    leases.renew(cluster, A, 2, LONG_MS)
    let_lapse(client, cluster, A)

    older = leases.renew(cluster, A, 1, LONG_MS, asked_for_ms=0)

    assert answered(older) == (Renewal.WAITING, "", LONGEST_LEASE_MS)
    assert answered(leases.renew(cluster, A, 2, LONG_MS)) == (Renewal.HELD, "", LONG_MS)
    let_lapse(client, cluster, A)
    waited = leases.renew(cluster, A, 1, LONG_MS, asked_for_ms=LONGEST_LEASE_MS)
    assert answered(waited) == (Renewal.HELD, "", LONG_MS)


def test_a_later_process_waits_for_an_older_ones_lease_which_is_not_renewed_any_more(
    leases: Leases, client: redis.Redis, cluster: str
) -> None:
    leases.renew(cluster, A, 1, LONG_MS)

    later = leases.renew(cluster, A, 2, LONG_MS)

    assert (later.renewal, later.detail) == (Renewal.WAITING, "1")
    assert 0 < later.ms <= LONG_MS
    assert answered(leases.renew(cluster, A, 1, LONG_MS)) == (Renewal.SUPERSEDED, "2", 0)
    let_lapse(client, cluster, A)
    assert leases.renew(cluster, A, 1, LONG_MS).renewal is Renewal.SUPERSEDED
    assert answered(leases.renew(cluster, A, 2, LONG_MS)) == (Renewal.HELD, "", LONG_MS)


def test_a_process_that_asks_again_waits_no_longer_for_that(leases: Leases, cluster: str) -> None:
    leases.renew(cluster, A, 1, LONG_MS)

    first = leases.renew(cluster, A, 2, LONG_MS)
    again = leases.renew(cluster, A, 2, LONG_MS)

    assert again.renewal is Renewal.WAITING
    assert again.ms <= first.ms


def test_a_name_counts_as_alive_until_the_process_that_waits_has_asked_again(
    leases: Leases, client: redis.Redis, cluster: str
) -> None:
    """Or its bundles would go to others in between."""
    leases.renew(cluster, A, 1, LONG_MS)

    waiting = leases.renew(cluster, A, 2, LONG_MS)

    assert client.pttl(keys.lease_key(cluster, A)) > waiting.ms + 1_000


def test_a_later_process_waits_for_an_older_one_whose_lease_was_deleted(
    leases: Leases, client: redis.Redis, cluster: str
) -> None:
    leases.renew(cluster, A, 1, LONG_MS)
    client.delete(keys.lease_key(cluster, A))

    later = leases.renew(cluster, A, 2, LONG_MS)

    assert (later.renewal, later.detail) == (Renewal.WAITING, "1")
    assert 0 < later.ms <= LONG_MS
    assert answered(leases.renew(cluster, A, 1, LONG_MS)) == (Renewal.SUPERSEDED, "2", 0)


def test_an_older_process_ends_although_a_later_ones_lease_was_deleted(
    leases: Leases, client: redis.Redis, cluster: str
) -> None:
    leases.renew(cluster, A, 2, LONG_MS)
    client.delete(keys.lease_key(cluster, A))

    assert answered(leases.renew(cluster, A, 1, LONG_MS)) == (Renewal.SUPERSEDED, "2", 0)


def test_a_lease_that_a_clock_has_prolonged_is_waited_for_no_longer_than_any(
    leases: Leases, client: redis.Redis, cluster: str
) -> None:
    client.set(keys.lease_key(cluster, A), "1", px=3_600_000)

    waiting = leases.renew(cluster, A, 2, LONG_MS)

    assert answered(waiting) == (Renewal.WAITING, "1", LONGEST_LEASE_MS)
    assert client.pttl(keys.lease_key(cluster, A)) in range(1, LONGEST_LEASE_MS + 3_001)


def test_a_process_that_ends_leaves_the_rest_of_its_lease_to_the_next(
    leases: Leases, client: redis.Redis, cluster: str
) -> None:
    leases.renew(cluster, A, 1, LONG_MS)

    assert leases.renew(cluster, A, 1, FOR_THE_NEXT).renewal is Renewal.RELEASED

    assert leases.holds(cluster, A)
    assert client.pttl(keys.lease_key(cluster, A)) <= LONG_MS
    assert answered(leases.renew(cluster, A, 2, LONG_MS)) == (Renewal.HELD, NO_SESSION, LONG_MS)


def test_only_the_process_that_holds_a_lease_gives_it_up(leases: Leases, cluster: str) -> None:
    leases.renew(cluster, A, 2, LONG_MS)

    for session in (1, 3):
        leases.renew(cluster, A, session, 0)
        leases.renew(cluster, A, session, FOR_THE_NEXT)

    assert answered(leases.renew(cluster, A, 2, LONG_MS)) == (Renewal.HELD, "2", LONG_MS)


def test_releasing_a_lease_of_another_session_changes_nothing(
    leases: Leases, client: redis.Redis, cluster: str
) -> None:
    leases.renew(cluster, A, 2, LONG_MS)
    leases.renew(cluster, A, 3, 0)
    client.delete(keys.lease_key(cluster, A))

    assert leases.renew(cluster, A, 3, LONG_MS).renewal is Renewal.WAITING


@pytest.mark.parametrize("age_ms", [-60_000, 1_500], ids=["time to come", "older than a second"])
def test_a_jobs_note_that_is_not_of_the_last_second_does_not_vouch_for_the_clock(
    leases: Leases, client: redis.Redis, cluster: str, age_ms: int
) -> None:
    """The clock went back since, and its key lasts longer than it should."""
    leases.renew(cluster, A, 1, LONG_MS)
    let_lapse(client, cluster, A)
    client.set(keys.clock_key(cluster), server_ms(client) - age_ms)

    told = leases.renew(cluster, A, 2, LONG_MS, asked_for_ms=0)

    assert answered(told) == (Renewal.WAITING, "", LONGEST_LEASE_MS)


def test_a_process_that_waits_is_told_that_the_older_one_has_ended(
    leases: Leases, client: redis.Redis, cluster: str
) -> None:
    leases.renew(cluster, A, 1, LONG_MS)
    leases.renew(cluster, A, 2, LONG_MS)

    leases.renew(cluster, A, 1, 0)

    # For a second: it may be slow to ask again.
    assert client.pttl(keys.lease_key(cluster, A)) in range(500, 1_001)
    assert leases.renew(cluster, A, 2, LONG_MS).detail == NO_SESSION


def test_agents_of_an_older_version_are_told_apart(
    leases: Leases, client: redis.Redis, cluster: str
) -> None:
    leases.renew(cluster, A, 1, LONG_MS)
    leases.renew(cluster, "ended:8080", 1, LONG_MS)
    leases.renew(cluster, "ended:8080", 1, FOR_THE_NEXT)
    client.set(keys.lease_key(cluster, "old:8080"), "1700000000000", px=LONG_MS)

    assert leases.outdated(cluster) == {"old:8080"}


@pytest.mark.parametrize("scripted", [True, False], ids=["job was upgraded once", "never"])
def test_beside_an_older_job_only_who_serves_already_renews(
    leases: Leases, client: redis.Redis, cluster: str, scripted: bool
) -> None:
    leases.renew(cluster, A, 1, LONG_MS)
    client.hset(keys.open_key(cluster), "run_id", "0" * 40)
    if not scripted:
        client.script_flush()

    with pytest.raises(Misconfigured, match="upgrade the job first"):
        leases.renew(cluster, "new:8080", 1, LONG_MS)
    said = Assertion(records={})
    assert leases.renew(cluster, A, 1, LONG_MS, said).renewal is Renewal.ASSERTED


@pytest.mark.parametrize("changed", ["lease", "open"])
def test_without_the_script_nothing_is_written_over_what_changed_meanwhile(
    leases: Leases, client: redis.Redis, cluster: str, changed: str
) -> None:
    """The process is stopped between its reads and its write for longer than its lease."""
    leases.renew(cluster, A, 1, LONG_MS)
    client.script_flush()

    def pass_time() -> None:
        if changed == "lease":
            let_lapse(client, cluster, A)
            client.set(keys.lease_key(cluster, A), "+2", px=LONG_MS)
        else:
            client.hset(keys.open_key(cluster), "generation", 2)

    before = client.get(keys.lease_key(cluster, A))
    said = Assertion(records={})
    with pytest.raises(StoreUnavailable, match="changed while it was renewed"):
        Leases(Interrupted(client, pass_time)).renew(cluster, A, 1, LONG_MS, said)

    assert client.get(keys.lease_key(cluster, A)) == (b"+2" if changed == "lease" else before)
    assert client.script_exists(lease_script().sha) == [False]


class Interrupted(redis.Redis):
    """A connection whose process is stopped before it writes."""

    def __init__(self, client: redis.Redis, meanwhile: Callable[[], None]) -> None:
        super().__init__(connection_pool=client.connection_pool)
        self._meanwhile = meanwhile

    def pipeline(self, transaction: Any = True, shard_hint: Any = None) -> Pipeline:
        steps = super().pipeline(transaction, shard_hint)
        execute = steps.execute

        def stopped(raise_on_error: bool = True) -> list[Any]:
            self._meanwhile()
            return execute(raise_on_error)

        steps.execute = stopped  # type: ignore[method-assign]  # what happens before it is the test
        return steps


def test_a_lease_key_of_the_older_process_does_not_stand_above_what_the_later_one_holds(
    leases: Leases, client: redis.Redis, cluster: str
) -> None:
    """A request that arrived late wrote over the key: the sessions still know."""
    leases.renew(cluster, A, 2, LONG_MS)
    client.set(keys.lease_key(cluster, A), "+1", px=LONG_MS)

    assert answered(leases.renew(cluster, A, 1, LONG_MS)) == (Renewal.SUPERSEDED, "2", 0)


def test_who_took_a_lease_that_only_seemed_to_have_ended_waits_for_the_older_process(
    leases: Leases, client: redis.Redis, cluster: str
) -> None:
    leases.renew(cluster, A, 1, LONG_MS)
    client.set(keys.lease_key(cluster, A), "+2", px=1_000)

    later = leases.renew(cluster, A, 2, LONG_MS, asked_for_ms=0)

    assert (later.renewal, later.detail) == (Renewal.WAITING, "1")
    assert later.ms > LONG_MS - 5_000
    assert client.get(keys.lease_key(cluster, A)) == b"+1"


@pytest.mark.parametrize("lease", ["deleted", "its own"])
def test_where_the_clock_may_have_ended_the_older_lease_its_key_proves_nothing(
    leases: Leases, client: redis.Redis, cluster: str, lease: str
) -> None:
    leases.renew(cluster, A, 1, LONG_MS)
    let_lapse(client, cluster, A)
    if lease == "its own":
        client.set(keys.lease_key(cluster, A), "+2", px=LONG_MS)

    told = leases.renew(cluster, A, 2, LONG_MS, asked_for_ms=4_000)
    assert answered(told) == (Renewal.WAITING, "", LONGEST_LEASE_MS - 4_000)
    if lease == "its own":
        assert client.pttl(keys.lease_key(cluster, A)) > told.ms
    told = leases.renew(cluster, A, 2, LONG_MS, asked_for_ms=LONGEST_LEASE_MS)
    assert answered(told)[0] is Renewal.HELD


def test_without_the_script_a_later_process_waits_for_one_whose_lease_key_is_gone(
    leases: Leases, client: redis.Redis, cluster: str
) -> None:
    leases.renew(cluster, A, 1, LONG_MS)
    client.delete(keys.lease_key(cluster, A))
    client.script_flush()
    said = Assertion(records={})

    told = leases.renew(cluster, A, 2, LONG_MS, said, asked_for_ms=3_000)
    assert answered(told) == (Renewal.WAITING, "", LONGEST_LEASE_MS - 3_000)
    assert leases.renew(cluster, A, 1, LONG_MS, said, asked_for_ms=0).renewal is Renewal.ASSERTED
    client.set(keys.lease_key(cluster, A), NO_SESSION, px=LONG_MS)
    assert leases.renew(cluster, A, 2, LONG_MS, said, asked_for_ms=0).renewal is Renewal.ASSERTED


@pytest.mark.parametrize("scripted", [True, False], ids=["job has been here", "no job yet"])
def test_what_somebody_has_spoiled_ends_no_agent(
    leases: Leases, client: redis.Redis, cluster: str, scripted: bool
) -> None:
    """An agent survives only the errors that a renewal is known to raise."""
    client.hset(keys.replicas_key(cluster), mapping={"online": "some", "before": "many"})
    if not scripted:
        client.script_flush()

    told = leases.renew(cluster, A, 1, LONG_MS, Assertion(records={}))
    assert told.renewal is (Renewal.HELD if scripted else Renewal.ASSERTED)

    client.set(keys.lease_key(cluster, A), "spoiled")
    with pytest.raises(Damaged):
        leases.renew(cluster, A, 1, LONG_MS, Assertion(records={}))


@pytest.mark.parametrize("noted", ["online", "before"])
@pytest.mark.parametrize("scripted", [True, False], ids=["job has been here", "no job yet"])
def test_replicas_that_only_brokers_saw_may_have_become_masters_too(
    leases: Leases, client: redis.Redis, cluster: str, noted: str, scripted: bool
) -> None:
    """A lease that comes from another master must have left what that one takes to notice."""
    assert leases.renew(cluster, A, 1, LONG_MS).must_have_left_ms == 0
    client.hset(keys.replicas_key(cluster), mapping={"on": "0" * 40, noted: 1})
    close(client, cluster)
    client.hset(keys.open_key(cluster), "replicas_set", "1")
    if not scripted:
        client.script_flush()

    told = leases.renew(cluster, A, 1, LONG_MS, Assertion(records={}))

    assert (told.renewal, told.must_have_left_ms) == (Renewal.ASSERTED, REPLICA_WAIT_MS)


@pytest.mark.parametrize("noted", ["online", "before"])
@pytest.mark.parametrize("scripted", [True, False], ids=["job has been here", "no job yet"])
def test_a_master_whose_history_before_had_replicas_needs_them(
    leases: Leases, client: redis.Redis, cluster: str, noted: str, scripted: bool
) -> None:
    """They joined while the job was away. One of them may be the master by now."""
    client.hset(keys.replicas_key(cluster), mapping={"on": "0" * 40, noted: 1})
    close(client, cluster)
    if not scripted:
        client.script_flush()

    for _ in range(2):
        with pytest.raises(StoreUnavailable, match="0 of 1"):
            leases.renew(cluster, A, 1, LONG_MS, Assertion(records={}))


def test_a_full_server_renews_leases(own_server: RedisServer, cluster: str) -> None:
    with redis_client(own_server.url) as client:
        let_in(client, cluster, 1)
        leases = Leases(client)
        leases.renew(cluster, A, 1, LONG_MS)
        client.config_set("maxmemory", "1")

        assert leases.renew(cluster, A, 1, LONG_MS).renewal is Renewal.HELD
        client.config_set("maxmemory", "0")
        close(client, cluster)
        client.config_set("maxmemory", "1")
        said = Assertion(records={})
        assert leases.renew(cluster, A, 1, LONG_MS, said).renewal is Renewal.ASSERTED
        with pytest.raises(StoreUnavailable):
            ClusterGate(client).open(cluster, 2)


@pytest.mark.parametrize("scripted", [True, False], ids=["job has been here", "no job yet"])
def test_a_replica_grants_no_lease(own_server: RedisServer, cluster: str, scripted: bool) -> None:
    with redis_client(own_server.url) as client:
        let_in(client, cluster, 1)
        if not scripted:
            client.script_flush()
        client.config_set("replica-read-only", "no")
        client.replicaof("127.0.0.1", 1)

        with pytest.raises(StoreUnavailable):
            Leases(client).renew(cluster, A, 1, LONG_MS)


def test_a_process_that_started_earlier_does_not_take_the_lease_back(
    leases: Leases, client: redis.Redis, cluster: str
) -> None:
    leases.renew(cluster, A, 10, LONG_MS)

    assert leases.renew(cluster, A, 9, LONG_MS).renewal is Renewal.SUPERSEDED
    assert client.get(keys.lease_key(cluster, A)) == b"+10"


def test_no_lease_is_longer_than_the_job_waits_for(leases: Leases, cluster: str) -> None:
    assert leases.renew(cluster, A, 1, 3_600_000).ms == 10_000


def test_no_lease_is_longer_than_a_job_with_a_shorter_wait_allows(
    leases: Leases, client: redis.Redis, cluster: str
) -> None:
    assert ClusterGate(client, longest_lease_ms=3_000).open(cluster, 2) is None

    assert leases.renew(cluster, A, 1, LONG_MS).ms == 3_000
    assert client.pttl(keys.lease_key(cluster, A)) <= 3_000


@pytest.mark.parametrize("scripted", [True, False], ids=["job has been here", "no job yet"])
def test_not_on_a_store_that_has_forgotten_either(
    leases: Leases, client: redis.Redis, cluster: str, scripted: bool
) -> None:
    client.delete(keys.open_key(cluster))
    if not scripted:
        client.script_flush()
    assert leases.renew(cluster, A, 1, 3_600_000, Assertion(records={})).ms == 10_000
    assert client.pttl(keys.lease_key(cluster, A)) <= 10_000


def test_a_broker_is_alive_until_its_lease_runs_out(leases: Leases, cluster: str) -> None:
    leases.renew(cluster, "lasting:8080", 1, LONG_MS)
    leases.renew(cluster, "passing:8080", 1, 1)

    while "passing:8080" in leases.alive(cluster):
        pass

    assert leases.alive(cluster) == {"lasting:8080"}
    assert leases.renew(cluster, "passing:8080", 1, LONG_MS).detail == ""


def test_a_lease_that_is_given_up_is_gone_at_once(leases: Leases, cluster: str) -> None:
    leases.renew(cluster, A, 1, LONG_MS)

    assert leases.renew(cluster, A, 1, 0).renewal is Renewal.RELEASED

    while A in leases.alive(cluster):
        pass


@pytest.mark.parametrize("scripted", [True, False], ids=["job has been here", "no job yet"])
def test_on_a_closed_store_a_broker_says_first_what_it_saw(
    leases: Leases, client: redis.Redis, cluster: str, scripted: bool
) -> None:
    leases.renew(cluster, A, 7, LONG_MS)
    history = close(client, cluster)
    if not scripted:
        client.script_flush()
    record = Record(state=State.OWNED, epoch=Epoch(1, 4), owner=A)

    said = Assertion(records={"t/n/0x00000000_0xffffffff": record})
    client.set(keys.assertion_key(cluster, "f" * 40, A), msgspec.json.encode(said))

    assert answered(leases.renew(cluster, A, 7, LONG_MS)) == (Renewal.ASSERT, history, 0)
    told = leases.renew(cluster, A, 7, LONG_MS, said)
    assert answered(told) == (Renewal.ASSERTED, "7", LONG_MS)
    assert ClusterGate(client).sources.assertions(cluster, history) == {A: said}
    assert answered(leases.renew(cluster, A, 7, LONG_MS)) == (Renewal.ASSERTED, "7", LONG_MS)
    assert leases.renew(cluster, A, 6, LONG_MS).renewal is Renewal.SUPERSEDED

    assert client.script_exists(lease_script().sha) == [scripted]


@pytest.mark.parametrize(
    ("row", "connected", "near"),
    [
        pytest.param({}, 1, 1, id="lately"),
        pytest.param({"lag": REPLICA_LAG_S + 1}, 1, 0, id="long ago"),
        pytest.param({"lag": -1}, 1, 0, id="the clock went back"),
        pytest.param({"state": "wait_bgsave"}, 0, 0, id="has not the data yet"),
        pytest.param({"port": 0}, 0, 0, id="is no server"),
    ],
)
def test_a_replica_counts_if_it_has_acknowledged_lately(
    client: redis.Redis, row: dict[str, object], connected: int, near: int
) -> None:
    told = {"ip": "::1", "port": 1, "state": "online", "offset": 7, "lag": REPLICA_LAG_S} | row
    text = ",".join(f"{name}={value}" for name, value in told.items())
    parts = (
        f"local REPLICA_LAG_S = {REPLICA_LAG_S}",
        files("sinks.redis").joinpath("lua", "replicas.lua").read_text(),
        "return { replicas_of(ARGV[1], tonumber(ARGV[2])) }",
    )

    def counted(offset: int) -> Any:
        found = f"role:master\r\nslave0:{text}\r\n"
        return client.eval("\n".join(parts), 0, found, str(offset))

    assert counted(7) == [connected, near]
    assert counted(8) == [connected, 0], "it has not acknowledged what was written since"
    assert _replicas({"connected_slaves": 1, "slave0": told}) == (connected, near)


@pytest.mark.parametrize("scripted", [True, False], ids=["job has been here", "no job yet"])
def test_what_brokers_said_is_forgotten_after_a_day(
    leases: Leases, client: redis.Redis, cluster: str, scripted: bool
) -> None:
    """Each history has keys of its own, and names of brokers come and go."""
    history = close(client, cluster)
    if not scripted:
        client.script_flush()

    leases.renew(cluster, A, 7, LONG_MS, Assertion(records={}))

    said = keys.assertion_key(cluster, history, A)
    assert client.pttl(said) in range(ASSERTION_KEPT_MS - 10_000, ASSERTION_KEPT_MS + 1)


@pytest.mark.parametrize("name", ["a*", "a?", "a[bc]", "a^", "a\\"])
def test_clusters_whose_names_look_like_patterns_are_kept_apart(
    client: redis.Redis, name: str
) -> None:
    let_in(client, name, 1)
    let_in(client, "ab", 1)
    leases = Leases(client)
    leases.renew(name, "mine:8080", 1, LONG_MS)
    leases.renew("ab", "other:8080", 1, LONG_MS)

    assert leases.alive(name) == {"mine:8080"}


def test_a_server_that_forgot_its_scripts_renews_no_lease_that_a_later_process_waits_for(
    leases: Leases, client: redis.Redis, cluster: str
) -> None:
    """SCRIPT FLUSH: the later one waits for what was left of it before."""
    leases.renew(cluster, A, 1, LONG_MS)
    assert leases.renew(cluster, A, 2, LONG_MS).renewal is Renewal.WAITING
    client.script_flush()

    older = leases.renew(cluster, A, 1, LONG_MS, Assertion(records={}))

    assert answered(older) == (Renewal.SUPERSEDED, "2", 0)
