"""A broker and the store come to agree on what it owns."""

from __future__ import annotations

import msgspec
import pytest
from redis import Redis

from agent.commands.obeying import Obeyed
from agent.ownership.seeding import look_again, seed
from sinks.errors import Closed
from tests.agent.support import BUNDLE, A, B, Job, Site, lines
from tests.support.opening import keep_alive
from trimtab.model import Epoch
from trimtab.ownership import Event, State
from trimtab.wire.command import CommandKind
from trimtab.wire.keys import lease_key, open_key, ownership_key
from trimtab.wire.ownership import Record, Refused, Transition


def no_renewal() -> None:
    """The lease lasts."""


LEFT, RIGHT = "t/two/0x00000000_0x80000000", "t/two/0x80000000_0xffffffff"


def test_a_broker_claims_what_it_holds(job: Job, client: Redis, cluster: str) -> None:
    site = Site(client, cluster, A, LEFT, RIGHT)
    seed(site.obeyer, 0, no_renewal)
    for bundle in (LEFT, RIGHT):
        assert (job.record(bundle).state, job.record(bundle).owner) == (State.OWNED, A)
        assert site.holdings.serves(bundle)
    assert site.broker.told == []


def test_two_brokers_that_hold_one_bundle_end_with_one_owner(
    job: Job, client: Redis, cluster: str
) -> None:
    first, second = Site(client, cluster, A, BUNDLE), Site(client, cluster, B, BUNDLE)
    seed(first.obeyer, 0, no_renewal)
    seed(second.obeyer, 0, no_renewal)
    assert job.record().owner == A
    assert second.broker.told == lines(["unload"])
    assert (first.holdings.serves(BUNDLE), second.holdings.serves(BUNDLE)) == (True, False)


@pytest.mark.usefixtures("job")
def test_a_restarted_broker_takes_up_what_its_records_name(client: Redis, cluster: str) -> None:
    before = Site(client, cluster, A, LEFT, RIGHT)
    seed(before.obeyer, 0, no_renewal)
    after = Site(client, cluster, A)
    seed(after.obeyer, 0, no_renewal)
    assert after.broker.loaded == {LEFT, RIGHT}
    assert after.holdings.serves(LEFT)


def test_a_bundle_given_up_is_claimed_from_where_its_record_stands(
    job: Job, client: Redis, cluster: str
) -> None:
    first = Site(client, cluster, A, BUNDLE)
    seed(first.obeyer, 0, no_renewal)
    job.lose()
    second = Site(client, cluster, B, BUNDLE)
    seed(second.obeyer, 0, no_renewal)
    assert (job.record().owner, job.record().epoch.counter) == (B, 3)


def test_a_claim_that_is_refused_grants_nothing_though_the_record_names_this_broker(
    job: Job, client: Redis, cluster: str
) -> None:
    """Two processes must never serve by one epoch: storage could not tell the two apart."""
    before = Site(client, cluster, A, BUNDLE)
    seed(before.obeyer, 0, no_renewal)
    after = Site(client, cluster, A)
    client.delete(lease_key(cluster, A))
    with pytest.raises(Closed, match="1 of a:8080's claims were refused"):
        seed(after.obeyer, 0, no_renewal)
    assert not after.holdings.serves(BUNDLE)
    keep_alive(client, cluster, (A,))
    seed(after.obeyer, 0, no_renewal)
    assert after.holdings.epoch(BUNDLE) == job.record().epoch == Epoch(1, 2)


def test_a_refused_claim_of_what_was_lost_on_the_way_grants_nothing(
    job: Job, client: Redis, cluster: str
) -> None:
    site = Site(client, cluster, A, BUNDLE)
    seed(site.obeyer, 0, no_renewal)
    site.holdings.drop(BUNDLE)
    client.delete(lease_key(cluster, A))
    site.obeyer.take_back(BUNDLE, job.record())
    assert not site.holdings.serves(BUNDLE)


def test_a_record_that_no_request_can_change_keeps_no_other_bundle_from_being_agreed_on(
    job: Job, client: Redis, cluster: str
) -> None:
    """Else all are claimed again and again, which makes every command about them out of date."""
    site, told = Site(client, cluster, A, LEFT, RIGHT), list[tuple[str, Record]]()
    site.obeyer.frozen = lambda bundle, record: told.append((bundle, record))
    beyond = Record(state=State.OWNED, epoch=Epoch(9, 1), owner=A)
    client.hset(ownership_key(cluster), LEFT, msgspec.json.encode(beyond))

    seed(site.obeyer, 0, no_renewal)

    assert told == [(LEFT, beyond)]
    assert [site.holdings.serves(bundle) for bundle in (LEFT, RIGHT)] == [False, True]
    assert job.record(RIGHT).epoch == Epoch(1, 1)


def test_what_was_asked_before_cannot_take_what_is_served_now(
    job: Job, client: Redis, cluster: str
) -> None:
    """A request that the server answers after its sender has given up and begun again."""
    site = Site(client, cluster, A, BUNDLE)
    seed(site.obeyer, 0, no_renewal)
    job.transfer(A, B)
    late = Transition(
        id="late",
        bundle=BUNDLE,
        event=Event.HAND_OVER,
        expect=job.record().epoch,
        actor=A,
    )
    seed(site.obeyer, 0, no_renewal)
    assert (job.record().state, job.record().owner) == (State.OWNED, A)
    assert job.store.apply(cluster, late).reason is Refused.STALE_EPOCH
    assert site.obey() == [Obeyed.STALE]
    assert site.holdings.serves(BUNDLE)
    assert site.broker.told == []


def test_a_broker_that_returns_takes_up_what_it_was_assigned_at_once(
    job: Job, client: Redis, cluster: str
) -> None:
    """Its command may be lost; where it is not, it comes too late."""
    job.assign(A)
    site = Site(client, cluster, A)
    seed(site.obeyer, 0, no_renewal)
    assert site.holdings.serves(BUNDLE)
    assert site.obey() == [Obeyed.STALE]
    assert site.holdings.serves(BUNDLE)


def test_a_broker_that_returns_declines_what_it_cannot_load(
    job: Job, client: Redis, cluster: str
) -> None:
    job.assign(A)
    site = Site(client, cluster, A)
    site.broker.broken = True
    seed(site.obeyer, 0, no_renewal)
    assert job.record().state is State.FREE


def test_a_record_older_than_what_was_seen_gives_nothing(
    job: Job, client: Redis, cluster: str
) -> None:
    """A store that was rolled back names this broker as the owner still."""
    site = Site(client, cluster, A, BUNDLE)
    seed(site.obeyer, 0, no_renewal)
    old = job.record()
    job.transfer(A, B)
    site.obey()
    client.hset(ownership_key(cluster), BUNDLE, msgspec.json.encode(old))
    seed(site.obeyer, 0, no_renewal)
    assert not site.holdings.serves(BUNDLE)
    assert site.broker.loaded == set()


def test_a_broker_says_so_if_an_open_store_gives_it_what_it_may_not_serve(
    job: Job, client: Redis, cluster: str
) -> None:
    """Redis and Kafka were made again by a job whose clock is behind; its state file was not."""
    site = Site(client, cluster, A, BUNDLE)
    site.obeyer.seen.note(BUNDLE, Record(state=State.OWNED, epoch=Epoch(50, 1), owner=A))
    told = list[tuple[str, Record]]()
    site.obeyer.forgotten = lambda bundle, record: told.append((bundle, record))
    seed(site.obeyer, 0, no_renewal)
    assert told == [(BUNDLE, job.record())]
    assert not site.holdings.serves(BUNDLE)


def test_a_record_older_than_what_was_seen_is_neither_taken_back_nor_obeyed(
    job: Job, client: Redis, cluster: str
) -> None:
    """Nor does what a store that was rolled back says of others end what is served."""
    first, second = Site(client, cluster, A, BUNDLE), Site(client, cluster, B)
    seed(first.obeyer, 0, no_renewal)
    old = job.record()
    job.transfer(A, B)
    first.obey()
    second.obey()
    first.obey()
    assert second.holdings.serves(BUNDLE)
    client.hset(ownership_key(cluster), BUNDLE, msgspec.json.encode(old))
    first.obeyer.take_back(BUNDLE, old)
    assert not first.holdings.serves(BUNDLE)
    assert job.record() == old
    look_again(second.obeyer, no_renewal)
    assert second.holdings.serves(BUNDLE)


def test_what_another_broker_has_had_for_long_is_forgotten(
    job: Job, client: Redis, cluster: str
) -> None:
    site = Site(client, cluster, A, BUNDLE)
    seed(site.obeyer, 0, no_renewal)
    job.transfer(A, B)
    site.obey()
    assert seed(site.obeyer, 0, no_renewal) == set()
    assert seed(site.obeyer, job.record().since + 2 * 3_600_000, no_renewal) == {BUNDLE}


def test_what_the_store_knows_less_of_than_this_broker_is_not_forgotten(
    job: Job, client: Redis, cluster: str
) -> None:
    """It was rolled back."""
    site = Site(client, cluster, A)
    job.assign(B)
    newer = msgspec.structs.replace(job.record(), epoch=Epoch(1, 9))
    site.obeyer.seen.note(BUNDLE, newer)
    assert seed(site.obeyer, newer.since + 2 * 3_600_000, no_renewal) == set()


@pytest.mark.usefixtures("job")
def test_a_refused_claim_of_what_is_served_ends_that(client: Redis, cluster: str) -> None:
    site = Site(client, cluster, A, BUNDLE)
    seed(site.obeyer, 0, no_renewal)
    client.delete(lease_key(cluster, A))
    with pytest.raises(Closed):
        seed(site.obeyer, 0, no_renewal)
    assert not site.holdings.serves(BUNDLE)


@pytest.mark.usefixtures("job")
def test_what_the_store_has_forgotten_is_forgotten_a_day_later_unless_it_is_held(
    client: Redis, cluster: str
) -> None:
    day, site = 24 * 3_600_000, Site(client, cluster, A)
    held = Site(client, cluster, B, BUNDLE)
    ended = Record(state=State.DELETED, epoch=Epoch(1, 7), since=day)
    for each in (site, held):
        each.obeyer.seen.note(BUNDLE, ended)
    assert seed(site.obeyer, 8 * day, no_renewal) == set()
    assert seed(site.obeyer, 9 * day + 1, no_renewal) == {BUNDLE}
    assert seed(held.obeyer, 9 * day + 1, no_renewal) == set()


def test_what_a_store_has_forgotten_is_remembered_however_long_ago_it_was(
    job: Job, client: Redis, cluster: str
) -> None:
    site = Site(client, cluster, A)
    job.assign(B)
    newer = msgspec.structs.replace(job.record(), epoch=Epoch(1, 9))
    site.obeyer.seen.note(BUNDLE, newer)
    seed(site.obeyer, job.record().since + 2 * 3_600_000, no_renewal)
    assert site.obeyer.seen.record(BUNDLE) == newer


def test_the_lease_is_renewed_between_bundles_that_are_loaded_before_they_are_claimed(
    job: Job, client: Redis, cluster: str
) -> None:
    for bundle in (LEFT, RIGHT):
        job.ask(Event.ASSIGN, A, {A: CommandKind.OWN}, bundle=bundle)
    site, loaded = Site(client, cluster, A), list[set[str]]()
    seed(site.obeyer, 0, lambda: loaded.append(set(site.broker.loaded)))
    assert {LEFT} in loaded


def test_before_a_job_has_opened_the_store_nothing_is_claimed(client: Redis, cluster: str) -> None:
    site = Site(client, cluster, A, BUNDLE)
    with pytest.raises(Closed):
        seed(site.obeyer, 0, no_renewal)
    assert not site.holdings.serves(BUNDLE)


def test_records_of_a_closed_store_are_not_believed(job: Job, client: Redis, cluster: str) -> None:
    before = Site(client, cluster, A, BUNDLE)
    seed(before.obeyer, 0, no_renewal)
    client.delete(open_key(cluster))
    after = Site(client, cluster, A)
    with pytest.raises(Closed):
        seed(after.obeyer, 0, no_renewal)
    assert not after.holdings.serves(BUNDLE)
    assert job.record().owner == A
