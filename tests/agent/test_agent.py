"""The loop beside a broker: its lease, its reports, and its patience with an absent store."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import replace

import msgspec
import pytest
from redis import Redis
from structlog.testing import capture_logs

from agent.clock import boot_clock, watch_server_time
from agent.commands.obeying import Obeyed
from agent.leasing import Superseded
from agent.ownership.forgetting import PAGE
from agent.ownership.holdings import Holdings
from agent.ports import LeaseKeeper
from sinks.errors import StoreUnavailable
from sinks.redis.cluster_gate import ClusterGate
from sinks.redis.leasing.lease import FOR_THE_NEXT, NO_SESSION, Lease
from sinks.redis.ownership_store import OwnershipStore
from sinks.redis.server.connections import redis_client
from tests.agent.support import BUNDLE, HALVES, SESSION, A, B, Job, Recorder, lines
from tests.agent.turned_by_hand import Host, hints
from tests.support.opening import close, let_in, let_lapse, server_ms
from tests.support.waiting import eventually
from trimtab.model import Epoch
from trimtab.ownership import State
from trimtab.wire.assertion import Assertion
from trimtab.wire.command import CommandKind
from trimtab.wire.keys import (
    clock_key,
    lease_key,
    open_key,
    owned_key,
    ownership_key,
    sessions_key,
    successor_key,
)
from trimtab.wire.ownership import Record

ENDED = Record(state=State.DELETED, epoch=Epoch(1, 7), since=0)
"""A bundle that the store has forgotten."""


def test_the_first_turn_reports_leases_and_claims(
    job: Job, client: Redis, host: Callable[..., Host]
) -> None:
    one = host(A, BUNDLE)
    assert not one.agent.serves(BUNDLE)
    assert one.agent.turn() == 0.0
    assert one.agent.serves(BUNDLE)
    assert one.reports() == 1
    assert job.record().owner == A
    assert 9_000 < client.pttl(lease_key(job.cluster, A)) <= 10_000


def test_a_transfer_between_two_agents(job: Job, host: Callable[..., Host]) -> None:
    source, destination = host(A, BUNDLE), host(B)
    for one in (source, destination):
        one.agent.turn()
    job.transfer(A, B)
    for one in (destination, source, destination):
        one.agent.turn()
    assert destination.broker.told == lines(["prepare", "load"])
    assert (source.agent.serves(BUNDLE), destination.agent.serves(BUNDLE)) == (False, True)
    assert destination.agent.obeyed() == {
        (CommandKind.PREPARE, Obeyed.DONE): 1,
        (CommandKind.OWN, Obeyed.DONE): 1,
    }


@pytest.mark.usefixtures("job")
def test_reports_keep_their_beat_and_missed_ones_are_not_made_up_for(
    host: Callable[..., Host],
) -> None:
    one = host(A)
    for now, reports in ((1000.0, 1), (1004.9, 1), (1005.1, 2), (1023.0, 3), (1025.0, 4)):
        one.clock.now = now
        one.agent.turn()
        assert one.reports() == reports


def test_until_a_job_has_opened_the_store_the_broker_reports_and_waits(
    host: Callable[..., Host], client: Redis, cluster: str
) -> None:
    one = host(A, BUNDLE)
    pauses = [one.agent.turn() for _ in range(6)]
    assert pauses == pytest.approx([0.1, 0.2, 0.4, 0.8, 1.6, 2.0])
    assert (one.reports(), one.agent.serves(BUNDLE)) == (1, False)
    job = Job(client, cluster)
    assert one.agent.turn() == 0.0
    assert one.agent.serves(BUNDLE)
    assert job.record().state is State.OWNED


def test_a_pause_ends_when_a_report_is_due(host: Callable[..., Host]) -> None:
    one = host(A, BUNDLE)
    one.agent.turn()
    one.clock.now += 4.95
    assert one.agent.turn() == pytest.approx(0.05)


@pytest.mark.usefixtures("job")
def test_serving_ends_before_the_lease_can_have_ended(host: Callable[..., Host]) -> None:
    one = host(A, BUNDLE)
    one.agent.turn()
    one.clock.now += 8.9
    assert one.agent.serves(BUNDLE)
    one.clock.now += 0.2
    assert not one.agent.serves(BUNDLE)


def test_after_a_lapse_the_records_say_what_is_still_owned(
    job: Job, host: Callable[..., Host]
) -> None:
    one = host(A, BUNDLE)
    one.agent.turn()
    one.clock.now += 60.0
    job.lose()
    job.assign(B)
    one.agent.turn()
    assert not one.agent.serves(BUNDLE)
    assert one.broker.loaded == set()


def test_a_lease_that_ran_out_in_the_store_counts_as_a_lapse(
    job: Job, client: Redis, host: Callable[..., Host]
) -> None:
    """The machine's clock may run slow: what the store says of the lease decides."""
    one = host(A, BUNDLE)
    one.agent.turn()
    let_lapse(client, job.cluster, A)
    job.lose()
    job.assign(B)
    one.clock.now += 4.0
    one.agent.turn()
    assert not one.agent.serves(BUNDLE)


@pytest.mark.usefixtures("job")
def test_a_broker_that_was_started_again_ends_the_older_process(
    host: Callable[..., Host],
) -> None:
    older, newer = host(A, BUNDLE), host(A, session=SESSION + 1)
    older.agent.turn()
    newer.agent.turn()
    assert older.agent.serves(BUNDLE)
    assert not newer.agent.serves(BUNDLE)
    older.clock.now += 4.0
    with pytest.raises(Superseded):
        older.agent.turn()
    assert not older.agent.serves(BUNDLE)


def test_a_process_waits_by_its_own_clock_for_the_end_of_an_older_ones_lease(
    job: Job, client: Redis, host: Callable[..., Host]
) -> None:
    """The server's clock may jump, and end that lease before the older process knows."""
    older, newer = host(A, BUNDLE), host(A, session=SESSION + 1)
    older.agent.turn()
    newer.agent.turn()
    let_lapse(client, job.cluster, A)
    newer.clock.now += 4.0
    newer.agent.turn()
    assert not newer.agent.serves(BUNDLE)
    older.clock.now += 9.0
    assert not older.agent.serves(BUNDLE)
    newer.clock.now += 6.0
    newer.agent.turn()
    assert newer.agent.serves(BUNDLE)


@pytest.mark.usefixtures("job")
def test_a_process_serves_as_soon_as_the_older_one_has_ended(host: Callable[..., Host]) -> None:
    older, newer = host(A, BUNDLE), host(A, session=SESSION + 1)
    older.agent.start()
    eventually(lambda: older.agent.serves(BUNDLE), "the older process serves")
    newer.agent.turn()
    older.clock.now += 4.0
    older.agent.join(30.0)
    assert not older.agent.alive
    newer.agent.turn()
    assert newer.agent.serves(BUNDLE)


def test_a_long_backlog_costs_no_report(
    job: Job, host: Callable[..., Host], monkeypatch: pytest.MonkeyPatch
) -> None:
    one = host(A)
    one.agent.turn()
    load = one.broker.load

    def slowly(bundle: str) -> None:
        load(bundle)
        one.clock.now += 5.0

    monkeypatch.setattr(one.broker, "load", slowly)
    job.assign(A)
    one.agent.turn()
    assert one.reports() == 1
    one.agent.turn()
    assert one.reports() == 2


def test_an_absent_store_is_waited_for(cluster: str) -> None:
    with redis_client("redis://127.0.0.1:1/0") as unreachable:
        one = Host(unreachable, cluster, A, BUNDLE)
        assert [one.agent.turn() for _ in range(3)] == pytest.approx([0.1, 0.2, 0.4])
        assert one.reports() == 1


def test_an_agent_with_time_to_drain_gives_its_bundles_and_its_lease_away(
    job: Job, client: Redis, host: Callable[..., Host]
) -> None:
    leaving, staying = host(A, *HALVES), host(B)
    for one in (leaving, staying):
        one.agent.turn()
    hints(client, job.cluster, A, B)

    leaving.agent.stop(drain_s=30.0)
    leaving.agent.end()
    staying.agent.turn()

    assert leaving.broker.loaded == set()
    assert all(staying.agent.serves(half) for half in HALVES)
    assert client.pttl(lease_key(job.cluster, A)) <= 1


@pytest.mark.usefixtures("job")
def test_an_agent_that_drains_for_long_keeps_its_lease_meanwhile(
    host: Callable[..., Host], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, asked = host(A, *HALVES), list[int]()
    one.agent.turn()
    before_renewals(one, asked.append)
    monkeypatch.setattr(one.broker, "unload", lambda _: one.clock.advance(4.0))
    one.agent.stop(drain_s=30.0)
    one.agent.end()
    assert asked == [10_000, 0]


def test_an_agent_that_is_stopped_for_a_restart_keeps_its_records(
    job: Job, host: Callable[..., Host]
) -> None:
    one = host(A, BUNDLE)
    one.agent.turn()
    one.agent.stop()
    one.agent.end()
    assert job.record().owner == A
    again = host(A, session=SESSION + 1)
    again.agent.turn()
    assert again.agent.serves(BUNDLE)


def test_bundles_that_no_broker_can_take_are_left_free(job: Job, host: Callable[..., Host]) -> None:
    one = host(A, BUNDLE)
    one.agent.turn()
    one.agent.stop(drain_s=30.0)
    one.agent.end()
    assert job.record().state is State.FREE


def test_before_the_first_job_an_agent_says_that_none_has_opened_the_store(
    host: Callable[..., Host], capsys: pytest.CaptureFixture[str]
) -> None:
    host(A, BUNDLE).agent.turn()
    said = capsys.readouterr().out
    assert "no job has opened it on this data; start one" in said
    assert "rebuilt" not in said


def test_on_a_closed_store_an_agent_says_what_it_saw_and_goes_on_serving(
    job: Job, client: Redis, host: Callable[..., Host]
) -> None:
    one = host(A, BUNDLE)
    one.agent.turn()
    history = close(client, job.cluster)

    for _ in range(5):
        one.clock.now += 4.0
        one.agent.turn()
        assert one.agent.serves(BUNDLE)

    said = ClusterGate(client).sources.assertions(job.cluster, history)
    assert said[A].records[BUNDLE].owner == A


def test_an_agent_whose_lease_ran_out_while_the_store_was_closed_asks_again(
    job: Job, client: Redis, host: Callable[..., Host]
) -> None:
    one = host(A, BUNDLE)
    one.agent.turn()
    close(client, job.cluster)
    one.clock.now += 60.0
    one.agent.turn()
    assert not one.agent.serves(BUNDLE)
    let_in(client, job.cluster, 2)
    one.clock.now += 4.0
    one.agent.turn()
    assert one.agent.serves(BUNDLE)


def test_a_process_that_starts_beside_an_emptied_store_waits_for_its_records(
    job: Job, client: Redis, host: Callable[..., Host]
) -> None:
    """It holds nothing and finds nothing: that it owns nothing does not follow."""
    host(A, BUNDLE).agent.turn()
    records, opened = ownership_key(job.cluster), open_key(job.cluster)
    for key in (records, opened):
        client.rename(key, f"{key}:aside")

    let_lapse(client, job.cluster, A)
    client.set(clock_key(job.cluster), server_ms(client))
    again = host(A, session=SESSION + 1)
    assert again.agent.turn() > 0
    assert not again.agent.seeded

    for key in (records, opened):
        client.rename(f"{key}:aside", key)
    again.clock.now += 5.0
    again.agent.turn()
    assert again.agent.seeded
    assert again.agent.serves(BUNDLE)


class Restored(OwnershipStore):
    """Something happens whenever it has read what a broker owns."""

    def __init__(self, client: Redis, happens: Callable[[], object]) -> None:
        super().__init__(client)
        self._happens = happens

    def records_of(
        self, cluster: str, broker: str, besides: Iterable[str] = ()
    ) -> dict[str, Record]:
        found = super().records_of(cluster, broker, besides)
        self._happens()
        return found


def test_what_a_closed_store_lacks_is_not_believed_though_it_opens_meanwhile(
    job: Job, client: Redis, host: Callable[..., Host]
) -> None:
    """The broker would hold its lease, and never serve what the restored records give it."""
    older = host(A, BUNDLE)
    older.agent.turn()
    older.agent.stop()
    older.agent.end()
    lost = ownership_key(job.cluster), owned_key(job.cluster, A)
    for key in lost:
        client.rename(key, f"{key}:aside")
    close(client, job.cluster)

    def restored() -> None:
        for key in lost:
            client.rename(f"{key}:aside", key)
        let_in(client, job.cluster, 2)

    newer = host(A, session=SESSION + 1)
    newer.agent._obeyer.store = Restored(client, restored)
    newer.agent.turn()
    assert not newer.agent.seeded


@pytest.mark.parametrize("emptied", [False, True])
def test_what_a_store_has_forgotten_is_kept_unless_the_store_proves_open_afterwards(
    job: Job, client: Redis, host: Callable[..., Host], emptied: bool
) -> None:
    """One that is emptied while a broker begins knows nothing, for another reason."""
    one = host(A)
    ended = ENDED
    one.agent._links.seen.note(BUNDLE, ended)

    def happens() -> None:
        if emptied:
            client.delete(open_key(job.cluster), lease_key(job.cluster, A))

    one.agent._obeyer.store = Restored(client, happens)
    one.agent.turn()

    assert one.agent.seeded is not emptied
    assert one.agent._links.seen.record(BUNDLE) == (ended if emptied else None)


@pytest.mark.parametrize("emptied", [False, True])
def test_a_broker_that_runs_for_long_forgets_old_records_if_the_store_was_open(
    job: Job, client: Redis, host: Callable[..., Host], emptied: bool
) -> None:
    one = host(A, BUNDLE, forget_every=5.0)
    one.agent.turn()
    seen = one.agent._links.seen
    ended = {f"t/n/0x{n:08x}_0x{n + 1:08x}": ENDED for n in range(PAGE + 1)}
    for bundle, record in ended.items():
        seen.note(bundle, record)

    def happens() -> None:
        if emptied:
            client.delete(open_key(job.cluster))

    one.agent._obeyer.store = Restored(client, happens)
    one.clock.now += 4.0
    one.agent.turn()
    assert seen.all().keys() == {BUNDLE, *ended}
    one.clock.now += 4.0
    one.agent.turn()

    assert len(seen.all()) == (1 + len(ended) if emptied else 2)
    one.clock.now += 5.0
    one.agent.turn()
    assert (seen.all().keys() == {BUNDLE}) is not emptied
    assert one.agent.serves(BUNDLE)


@pytest.mark.parametrize("what", ["opens", "gap"])
def test_old_records_are_kept_where_the_store_may_have_known_too_little(
    job: Job, client: Redis, host: Callable[..., Host], what: str
) -> None:
    """It is open at the end of the look, but was closed, or emptied and rebuilt, within it."""
    one = host(A, BUNDLE, forget_every=2.0)
    one.agent.turn()
    old = "t/n/0x00000000_0x00000001"
    one.agent._links.seen.note(old, ENDED)

    def happens() -> None:
        if what == "opens":
            let_in(client, job.cluster, 2)
        else:
            one.clock.now += 20.0

    one.agent._obeyer.store = Restored(client, happens)
    if what == "opens":
        close(client, job.cluster)
    one.clock.now += 2.5
    one.agent.turn()
    assert one.agent._links.seen.record(old) == ENDED


@pytest.mark.parametrize("due", ["_look_at", "_forget_at"])
def test_commands_wait_until_a_broker_whose_lease_ran_out_has_its_bundles_again(
    job: Job, client: Redis, host: Callable[..., Host], due: str
) -> None:
    one = host(A, BUNDLE)
    one.agent.turn()
    job.transfer(A, B)
    let_lapse(client, job.cluster, A)
    setattr(one.agent._agreement, due, 0.0)
    one.agent.turn()
    assert not one.agent.seeded
    assert one.agent.obeyed() == {}


class Slow(Recorder):
    """Something happens whenever it loads a bundle."""

    def __init__(self, happens: Callable[[], object]) -> None:
        super().__init__()
        self._happens = happens

    def load(self, bundle: str) -> None:
        self._happens()
        super().load(bundle)


def starting(host: Callable[..., Host], happens: Callable[[Host], object]) -> Host:
    """A process whose broker owns BUNDLE and has still to load it."""
    older = host(A, BUNDLE)
    older.agent.turn()
    older.agent.stop()
    older.agent.end()
    newer: Host = host(A, session=SESSION + 1, broker=Slow(lambda: happens(newer)))
    return newer


def test_a_lease_that_ran_out_in_the_store_while_a_broker_began_is_noticed(
    job: Job, client: Redis, host: Callable[..., Host]
) -> None:
    """By its own clock it still holds: the server's may have jumped."""
    newer = starting(host, lambda _: let_lapse(client, job.cluster, A))
    newer.agent.turn()
    assert not newer.agent.serves(BUNDLE)
    newer.agent.turn()
    assert newer.agent.serves(BUNDLE)


def test_a_store_that_closes_while_a_broker_begins_is_noticed(
    job: Job, client: Redis, host: Callable[..., Host]
) -> None:
    """It serves what it had claimed by then, as every broker does, and asks for the rest again."""
    newer = starting(host, lambda _: close(client, job.cluster))
    newer.agent.turn()
    assert not newer.agent.seeded
    assert newer.agent.token(BUNDLE) == job.record().epoch


def test_a_store_that_was_closed_while_a_broker_began_is_noticed_though_it_is_open_again(
    job: Job, client: Redis, host: Callable[..., Host]
) -> None:
    """What it had claimed before may be lost."""
    older = host(A, *HALVES)
    older.agent.turn()
    older.agent.stop()
    older.agent.end()
    loads = list[int]()

    def happens() -> None:
        loads.append(len(loads))
        if len(loads) == 1:
            close(client, job.cluster)
            newer.clock.now = newer.agent._lease.renew_at
        else:
            let_in(client, job.cluster, 2)

    newer: Host = host(A, session=SESSION + 1, broker=Slow(happens))
    newer.agent.turn()
    assert loads
    assert not newer.agent.seeded


def test_a_broker_that_loads_for_longer_than_its_lease_begins_again(
    job: Job, host: Callable[..., Host]
) -> None:
    def passes(newer: Host) -> None:
        newer.clock.now += 20.0

    newer = starting(host, passes)
    newer.agent.turn()
    assert not newer.agent.serves(BUNDLE)
    newer.agent.turn()
    assert newer.agent.serves(BUNDLE)
    assert job.record().owner == A


@pytest.mark.usefixtures("job")
def test_a_broker_whose_lease_ran_out_loads_nothing_more_before_it_begins_again(
    host: Callable[..., Host],
) -> None:
    """Others may have been given the rest."""
    older = host(A, *HALVES)
    older.agent.turn()
    older.agent.stop()
    older.agent.end()

    def passes() -> None:
        newer.clock.now += 20.0

    newer: Host = host(A, session=SESSION + 1, broker=Slow(passes))
    newer.agent.turn()
    assert len(newer.broker.loaded) == 1


def test_a_process_that_drained_for_too_long_loads_nothing_that_a_later_one_serves(
    client: Redis, job: Job, host: Callable[..., Host], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The record names its broker; to open the bundle here would fence the other's storage."""
    older, newer = host(A, BUNDLE), host(A, session=SESSION + 1)
    older.agent.turn()
    job.transfer(A, B)

    def drain(bundle: str) -> None:
        older.broker.loaded.discard(bundle)
        older.clock.now += 20.0
        newer.agent.turn()
        let_lapse(client, job.cluster, A)
        newer.clock.now += 20.0
        newer.agent.turn()
        assert newer.agent.serves(BUNDLE)

    monkeypatch.setattr(older.broker, "unload", drain)
    older.agent.turn()

    assert older.broker.loaded == set()
    assert not older.agent.serves(BUNDLE)
    with pytest.raises(Superseded):
        older.agent.turn()


def test_a_broker_that_loads_many_bundles_renews_its_lease_meanwhile(
    job: Job, client: Redis, host: Callable[..., Host]
) -> None:
    older = host(A, *HALVES)
    older.agent.turn()
    older.agent.stop()
    older.agent.end()
    key, sessions = lease_key(job.cluster, A), []

    def passes() -> None:
        newer.clock.now += 6.0
        sessions.append(client.pttl(key))
        client.pexpire(key, 4_000)

    newer: Host = host(A, session=SESSION + 1, broker=Slow(passes))
    newer.agent.turn()
    assert [newer.agent.serves(half) for half in HALVES] == [True, True]
    assert min(sessions) > 4_000


def test_a_broker_that_loads_many_bundles_serves_each_and_reports_meanwhile(
    job: Job, host: Callable[..., Host]
) -> None:
    older = host(A, *HALVES)
    older.agent.turn()
    older.agent.stop()
    older.agent.end()
    seen: list[tuple[list[bool], bool, int]] = []

    def passes() -> None:
        agent = newer.agent
        seen.append(([agent.serves(half) for half in HALVES], agent.seeded, newer.reports()))
        newer.clock.now += 6.0

    newer: Host = host(A, session=SESSION + 1, broker=Slow(passes))
    newer.agent.turn()
    assert seen == [([False, False], False, 1), ([True, False], False, 2)]
    assert [newer.agent.token(half) for half in HALVES] == [
        job.record(half).epoch for half in HALVES
    ]


def test_a_lease_that_begins_while_a_client_asks_does_not_serve_what_was_held_before() -> None:
    def look() -> float:
        holdings.clear()
        holdings.extend(9.0)
        return 5.0

    holdings = Holdings(look)
    holdings.hold(BUNDLE, Epoch(1, 1))
    assert not holdings.serves(BUNDLE)
    holdings.hold(BUNDLE, Epoch(1, 1))
    assert holdings.epoch(BUNDLE) is None


def test_a_token_is_the_epoch_since_which_a_bundle_is_served(
    job: Job, host: Callable[..., Host]
) -> None:
    one = host(A, BUNDLE)
    assert one.agent.token(BUNDLE) is None
    one.agent.turn()
    assert one.agent.token(BUNDLE) == job.record().epoch
    assert one.agent.token(HALVES[0]) is None
    one.clock.now += 60.0
    assert one.agent.token(BUNDLE) is None


def test_the_servers_time_is_known_after_a_lease_and_until_it_jumps() -> None:
    watched = watch_server_time()
    watched.look(0.0, 100.0, 0.0)
    assert watched.estimate(9.9) is None
    assert watched.estimate(10.0) == 110.0
    watched.look(10.0, 110.6, 10.0)
    assert watched.estimate(10.0) is None


def test_a_lease_is_counted_by_a_clock_that_cannot_be_set() -> None:
    clock = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    assert boot_clock() == pytest.approx(time.clock_gettime(clock), abs=60.0)


def test_a_right_that_is_taken_away_ends_no_agent(
    job: Job, client: Redis, host: Callable[..., Host]
) -> None:
    client.acl_setuser("agent", enabled=True, passwords="+pw", keys=["*"], commands=["+@all"])
    port = client.connection_pool.connection_kwargs["port"]
    try:
        with redis_client(f"redis://agent:pw@127.0.0.1:{port}/0") as limited:
            one = host(A, BUNDLE, client=limited)
            one.agent.turn()
            client.acl_setuser("agent", commands=["-evalsha"])
            one.clock.now += 4.0
            assert one.agent.turn() > 0.0
            assert one.agent.serves(BUNDLE)
            one.clock.now += 60.0
            assert one.agent.turn() > 0.0
            assert not one.agent.serves(BUNDLE)
            client.acl_setuser("agent", commands=["+evalsha"])
            one.agent.turn()
            assert one.agent.serves(BUNDLE)
    finally:
        client.acl_deluser("agent")
    assert job.record().owner == A


@pytest.mark.usefixtures("job")
def test_what_a_broker_waits_for_is_told_again_when_it_is_something_else(
    client: Redis, cluster: str, host: Callable[..., Host]
) -> None:
    """An agent that is upgraded before the job waits for the older one's lease at first."""
    client.hset(open_key(cluster), "run_id", "an older job's")
    client.set(lease_key(cluster, A), str(SESSION - 1))
    one = host(A)

    with capture_logs() as said:
        one.agent.turn()
        one.agent.turn()
        let_lapse(client, cluster, A)
        one.clock.now += 11.0
        one.agent.turn()
        one.agent.turn()

    waits = [line["cause"] for line in said if line["event"] == "waiting for the store"]
    assert len(waits) == 2
    assert "an older process" in waits[0]
    assert "upgrade the job first" in waits[1]


@pytest.mark.parametrize("by_older_job", [False, True], ids=["rebuilt", "back at an older job"])
def test_what_is_to_leave_is_served_while_the_store_is_closed(
    job: Job, client: Redis, host: Callable[..., Host], *, by_older_job: bool
) -> None:
    """No broker could be given it."""
    one, two = host(A, BUNDLE), host(B)
    for each in (one, two):
        each.agent.turn()
    job.transfer(A, B)
    if by_older_job:
        client.hset(open_key(job.cluster), "run_id", "an older job's")
    else:
        close(client, job.cluster)
    one.clock.now += 4.0

    assert one.agent.turn() > 0.0
    assert one.agent.turn() > 0.0

    assert one.agent.serves(BUNDLE)
    assert one.broker.told == []
    client.hdel(open_key(job.cluster), "run_id")
    let_in(client, job.cluster, 2)
    for each in (one, two):
        each.agent.turn()
    assert (one.agent.serves(BUNDLE), two.agent.serves(BUNDLE)) == (False, True)


def test_what_a_rebuilt_store_gives_to_another_is_served_no_longer(
    job: Job, client: Redis, host: Callable[..., Host]
) -> None:
    low, high = HALVES
    one = host(A, low, high)
    one.agent.turn()
    close(client, job.cluster)
    one.clock.now += 4.0
    one.agent.turn()
    gate = ClusterGate(client)
    closure = gate.open(job.cluster, 7)
    assert closure is not None
    newer = Record(state=State.OWNED, epoch=Epoch(6, 1), owner=B, by="what only b saw")
    gate.restore(job.cluster, 7, {low: newer}, frozenset())
    assert one.agent.serves(low)

    assert gate.open(job.cluster, 7, closure.history) is None
    one.clock.now += 4.0
    one.agent.turn()

    assert not one.agent.serves(low)
    assert one.agent.serves(high)
    assert low not in one.broker.bundles()


def replicated(client: Redis, cluster: str) -> None:
    """The server was made the master in another's place."""
    close(client, cluster)
    client.hset(open_key(cluster), "replicated", "1")


@pytest.mark.parametrize(("later", "goes_on"), [(4.5, True), (5.5, False)])
def test_a_lease_that_is_about_to_end_elsewhere_does_not_go_on_at_a_new_master(
    job: Job, client: Redis, host: Callable[..., Host], later: float, goes_on: bool
) -> None:
    """The one that granted it may live on, and give the bundle away when it has ended there."""
    one = host(A, BUNDLE)
    one.agent.turn()
    replicated(client, job.cluster)
    one.agent._lease._history = "0" * 40
    one.clock.now += later
    one.agent.turn()
    assert one.agent.serves(BUNDLE) is goes_on


def test_a_closed_store_is_told_again_when_more_was_seen(
    job: Job, client: Redis, host: Callable[..., Host]
) -> None:
    one = host(A, BUNDLE)
    one.agent.turn()
    seen = job.record()
    history = close(client, job.cluster)
    one.clock.now += 4.0
    one.agent.turn()
    newer = msgspec.structs.replace(seen, epoch=Epoch(9, 9))
    one.seen.note(BUNDLE, newer)
    one.clock.now += 4.0
    one.agent.turn()
    said = ClusterGate(client).sources.assertions(job.cluster, history)
    assert said[A].records[BUNDLE].epoch == newer.epoch


def test_what_was_asked_while_no_answer_came_is_no_waiting(
    job: Job, client: Redis, host: Callable[..., Host]
) -> None:
    """The older process may have renewed its lease meanwhile, and does not know of this one."""
    older, newer = host(A, BUNDLE), host(A, session=SESSION + 1)
    older.agent.turn()
    links = newer.agent._lease._links
    newer.agent._lease._links = replace(links, leases=Away())
    newer.agent.turn()
    newer.clock.now += 60.0
    newer.agent._lease._links = links
    let_lapse(client, job.cluster, A)
    newer.agent.turn()
    assert not newer.agent.serves(BUNDLE)


def test_a_wait_for_an_older_process_is_not_shortened_by_a_server_whose_clock_jumps(
    job: Job, client: Redis, host: Callable[..., Host]
) -> None:
    """The older one serves by its own clock, which did not jump."""
    older, newer = host(A, BUNDLE), host(A, session=SESSION + 1)
    older.agent.turn()
    for left_ms in (None, 1_000, -1):
        if left_ms is not None:
            over = f"{SESSION + 1} {server_ms(client) + left_ms}"
            client.set(successor_key(job.cluster, A), over)
            client.set(clock_key(job.cluster), server_ms(client))
            newer.clock.now += 1.5
        newer.agent.turn()
    assert older.agent.serves(BUNDLE)
    assert not newer.agent.serves(BUNDLE)


class Away:
    """A server that nothing reaches."""

    def renew(self, *_: object) -> Lease:
        raise StoreUnavailable("no way to the server")


def test_the_end_of_an_older_versions_lease_is_waited_for_by_the_own_clock(
    job: Job, client: Redis, host: Callable[..., Host]
) -> None:
    """The server remembers no session of that process, and its clock may jump."""
    client.set(lease_key(job.cluster, A), str(SESSION), px=8_000)
    newer = host(A, BUNDLE, session=SESSION + 1)
    newer.agent.turn()
    let_lapse(client, job.cluster, A)
    newer.clock.now += 4.0
    newer.agent.turn()
    assert not newer.agent.serves(BUNDLE)
    newer.clock.now += 6.0
    newer.agent.turn()
    assert newer.agent.serves(BUNDLE)


def test_what_was_waited_before_the_older_process_had_its_lease_again_counts_for_nothing(
    job: Job, client: Redis, host: Callable[..., Host]
) -> None:
    """It has nearly a whole lease then, whatever is left by the server's clock, which jumped."""
    older, newer = host(A, BUNDLE), host(A, session=SESSION + 1)
    older.agent.turn()
    newer.agent.turn()
    newer.clock.now += 20.0
    client.delete(successor_key(job.cluster, A))
    older.clock.now += 4.0
    older.agent.turn()
    client.pexpire(lease_key(job.cluster, A), 1_000)
    newer.agent.turn()
    let_lapse(client, job.cluster, A)
    newer.clock.now += 1.5
    newer.agent.turn()
    assert older.agent.serves(BUNDLE)
    assert not newer.agent.serves(BUNDLE)


class Before:
    """Something happens on the way to the server."""

    def __init__(self, leases: LeaseKeeper, happens: Callable[[int], object]) -> None:
        self._leases, self._happens = leases, happens

    def renew(  # noqa: PLR0913 - as what it delays
        self,
        cluster: str,
        broker: str,
        session: int,
        ttl_ms: int,
        assertion: Assertion | None = None,
        asked_for_ms: int = 0,
    ) -> Lease:
        self._happens(ttl_ms)
        return self._leases.renew(cluster, broker, session, ttl_ms, assertion, asked_for_ms)


def before_renewals(one: Host, happens: Callable[[int], object]) -> None:
    """From now on; told for how long the lease is asked for."""
    links = one.agent._lease._links
    one.agent._lease._links = replace(links, leases=Before(links.leases, happens))


def slowly(one: Host, seconds: float) -> None:
    """A turn whose renewals are on their way for so long."""
    links = one.agent._lease._links
    before_renewals(one, lambda _: one.clock.advance(seconds))
    one.agent.turn()
    one.agent._lease._links = links


def test_a_wait_begins_with_the_first_answer(
    job: Job, client: Redis, host: Callable[..., Host]
) -> None:
    """Until then the older process could renew."""
    older, newer = host(A, BUNDLE), host(A, session=SESSION + 1)
    older.agent.turn()
    let_lapse(client, job.cluster, A)
    slowly(newer, 5.0)
    newer.clock.now += 5.5
    newer.agent.turn()
    assert not newer.agent.serves(BUNDLE)
    newer.clock.now += 5.0
    newer.agent.turn()
    assert newer.agent.serves(BUNDLE)


def test_what_it_waited_before_it_had_the_lease_does_not_count_after_it(
    job: Job, client: Redis, host: Callable[..., Host]
) -> None:
    """A store that has lost its writes takes an older process for the last one of this name."""
    one = host(A, BUNDLE)
    client.hset(sessions_key(job.cluster), A, SESSION - 1)
    one.agent.turn()
    one.clock.now += 11.0
    one.agent.turn()
    assert one.agent.serves(BUNDLE)
    one.clock.now += 20.0
    client.hset(sessions_key(job.cluster), A, SESSION - 1)
    let_lapse(client, job.cluster, A)
    one.agent.turn()
    one.clock.now += 5.0
    one.agent.turn()
    assert not one.agent.serves(BUNDLE)
    one.clock.now += 6.0
    one.agent.turn()
    assert one.agent.serves(BUNDLE)


@pytest.mark.usefixtures("job")
def test_a_lease_is_counted_from_before_it_was_asked_for(host: Callable[..., Host]) -> None:
    one = host(A, BUNDLE)
    one.agent.turn()
    one.clock.now += 4.0
    slowly(one, 3.0)
    one.clock.now += 5.9
    assert one.agent.serves(BUNDLE)
    one.clock.now += 0.2
    assert not one.agent.serves(BUNDLE)


def test_a_lease_that_ran_out_before_the_store_was_closed_is_a_gap(
    job: Job, client: Redis, host: Callable[..., Host]
) -> None:
    """The job closes a store whose data it finds lost; the history goes on."""
    one = host(A, BUNDLE)
    one.agent.turn()
    job.lose()
    job.assign(B)
    close(client, job.cluster)
    one.clock.now += 4.0
    one.agent.turn()
    assert not one.agent.serves(BUNDLE)


def test_a_lease_that_another_process_has_left_is_a_gap_on_a_closed_store_too(
    job: Job, client: Redis, host: Callable[..., Host]
) -> None:
    one = host(A, BUNDLE)
    one.agent.turn()
    close(client, job.cluster)
    one.agent._lease._history = "0" * 40
    client.set(lease_key(job.cluster, A), NO_SESSION, px=8_000)
    one.clock.now += 4.0
    one.agent.turn()
    assert not one.agent.serves(BUNDLE)


def test_a_process_that_must_wait_for_an_older_one_serves_nothing(
    job: Job, client: Redis, host: Callable[..., Host]
) -> None:
    """Of a server that went back to before this one had the lease."""
    one = host(A, BUNDLE)
    one.agent.turn()
    client.set(lease_key(job.cluster, A), f"+{SESSION - 1}", px=8_000)
    one.clock.now += 4.0
    one.agent.turn()
    assert not one.agent.serves(BUNDLE)


@pytest.mark.usefixtures("job")
def test_who_ends_serves_nothing_before_the_lease_is_given_up(host: Callable[..., Host]) -> None:
    one, served = host(A, BUNDLE), []
    one.agent.turn()
    before_renewals(one, lambda ms: served.append((ms, one.agent.serves(BUNDLE))))
    one.agent.stop()
    one.agent.end()
    assert served == [(FOR_THE_NEXT, False)]


@pytest.mark.usefixtures("job")
def test_who_ends_while_nothing_reaches_the_server_serves_nothing_any_more(
    host: Callable[..., Host],
) -> None:
    one = host(A, BUNDLE)
    one.agent.turn()
    one.agent._lease._links = replace(one.agent._lease._links, leases=Away())
    one.clock.now = one.agent._lease.renew_at
    assert one.agent.serves(BUNDLE)
    one.agent.stop(drain_s=60.0)
    one.agent.end()
    assert not one.agent.serves(BUNDLE)


@pytest.mark.usefixtures("job")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_where_the_brokers_own_code_fails_nothing_is_served_any_more(
    host: Callable[..., Host], monkeypatch: pytest.MonkeyPatch
) -> None:
    one = host(A, BUNDLE)
    one.agent.start()
    eventually(lambda: one.agent.serves(BUNDLE), "it serves")
    monkeypatch.delattr(type(one.broker), "load_report")
    one.clock.now += 5.1
    one.agent.join(30.0)
    assert not one.agent.alive
    assert not one.agent.serves(BUNDLE)


@pytest.mark.usefixtures("job")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_where_the_brokers_own_code_ends_the_thread_the_log_says_so(
    host: Callable[..., Host], monkeypatch: pytest.MonkeyPatch
) -> None:
    def end() -> None:
        raise SystemExit(1)

    one = host(A, BUNDLE)
    monkeypatch.setattr(one.broker, "load_report", end)

    with capture_logs() as said:
        one.agent.start()
        one.agent.join(30.0)

    assert not one.agent.alive
    assert "failed" in [line["event"] for line in said]
