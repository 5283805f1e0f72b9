"""A broker and the store come to agree on what it owns."""

from __future__ import annotations

import pytest
from redis import Redis

from agent.obeying import Obeyed
from agent.seeding import seed
from sinks.errors import Closed
from tests.agent.support import BUNDLE, A, B, Job, Site, lines
from trimtab.ownership import State
from trimtab.wire.keys import open_key

LEFT, RIGHT = "t/two/0x00000000_0x80000000", "t/two/0x80000000_0xffffffff"


def test_a_broker_claims_what_it_holds(job: Job, client: Redis, cluster: str) -> None:
    site = Site(client, cluster, A, LEFT, RIGHT)
    seed(site.obeyer)
    for bundle in (LEFT, RIGHT):
        assert (job.record(bundle).state, job.record(bundle).owner) == (State.OWNED, A)
        assert site.holdings.serves(bundle)
    assert site.broker.told == []


def test_two_brokers_that_hold_one_bundle_end_with_one_owner(
    job: Job, client: Redis, cluster: str
) -> None:
    first, second = Site(client, cluster, A, BUNDLE), Site(client, cluster, B, BUNDLE)
    seed(first.obeyer)
    seed(second.obeyer)
    assert job.record().owner == A
    assert second.broker.told == lines(["unload"])
    assert (first.holdings.serves(BUNDLE), second.holdings.serves(BUNDLE)) == (True, False)


@pytest.mark.usefixtures("job")
def test_a_restarted_broker_takes_up_what_its_records_name(client: Redis, cluster: str) -> None:
    before = Site(client, cluster, A, LEFT, RIGHT)
    seed(before.obeyer)
    after = Site(client, cluster, A)
    seed(after.obeyer)
    assert after.broker.loaded == {LEFT, RIGHT}
    assert after.holdings.serves(LEFT)


def test_a_bundle_given_up_is_claimed_from_where_its_record_stands(
    job: Job, client: Redis, cluster: str
) -> None:
    first = Site(client, cluster, A, BUNDLE)
    seed(first.obeyer)
    job.lose()
    second = Site(client, cluster, B, BUNDLE)
    seed(second.obeyer)
    assert (job.record().owner, job.record().epoch.counter) == (B, 3)


def test_seeding_twice_changes_nothing(job: Job, client: Redis, cluster: str) -> None:
    site = Site(client, cluster, A, BUNDLE)
    seed(site.obeyer)
    before = job.record()
    seed(site.obeyer)
    assert job.record() == before
    assert site.broker.told == []


def test_a_bundle_that_is_being_assigned_waits_for_its_command(
    job: Job, client: Redis, cluster: str
) -> None:
    job.assign(A)
    site = Site(client, cluster, A)
    seed(site.obeyer)
    assert not site.holdings.serves(BUNDLE)
    assert site.obey() == [Obeyed.DONE]
    assert site.holdings.serves(BUNDLE)


def test_before_a_job_has_opened_the_store_nothing_is_claimed(client: Redis, cluster: str) -> None:
    site = Site(client, cluster, A, BUNDLE)
    with pytest.raises(Closed):
        seed(site.obeyer)
    assert not site.holdings.serves(BUNDLE)


def test_records_of_a_closed_store_are_not_believed(job: Job, client: Redis, cluster: str) -> None:
    before = Site(client, cluster, A, BUNDLE)
    seed(before.obeyer)
    client.delete(open_key(cluster))
    after = Site(client, cluster, A)
    with pytest.raises(Closed):
        seed(after.obeyer)
    assert not after.holdings.serves(BUNDLE)
    assert job.record().owner == A
