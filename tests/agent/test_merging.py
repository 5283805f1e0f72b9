"""What a broker does when it is to make one of two bundles, and what it may serve meanwhile."""

from __future__ import annotations

import msgspec
import pytest
from redis import Redis

from agent.commands.actions import obey
from agent.commands.obeying import Obeyed
from sinks.errors import Closed, StoreUnavailable
from sinks.redis.ownership_store import OwnershipStore
from tests.agent.support import BUNDLE, HALVES, A, B, Job, NotPossible, Site
from trimtab.ownership import Event, State
from trimtab.wire.command import Command
from trimtab.wire.keys import open_key, ownership_key
from trimtab.wire.ownership import Transition, TransitionOutcome


@pytest.fixture
def halved(job: Job, a: Site) -> Job:
    """A job whose two bundles ``a`` serves."""
    job.assign(A)
    a.obey()
    job.split(A)
    assert a.obey() == [Obeyed.DONE]
    a.broker.told.clear()
    return job


def served(site: Site) -> list[str]:
    return [name for name in (BUNDLE, *HALVES) if site.holdings.serves(name)]


def told_to_merge(job: Job, site: Site) -> Command:
    job.merge(A)
    (command,) = site.commands()
    return command


def states(job: Job) -> list[State]:
    return [job.record(name).state for name in (BUNDLE, *HALVES)]


MERGED = [State.OWNED, State.DELETED, State.DELETED]
APART = [State.DELETED, State.OWNED, State.OWNED]


def test_merged_bundles_are_served_as_one(halved: Job, a: Site) -> None:
    halved.merge(A)
    assert states(halved)[1:] == [State.MERGING] * 2
    assert a.obey() == [Obeyed.DONE]
    assert a.broker.told == [f"merge {BUNDLE}"]
    assert (states(halved), halved.record().owner) == (MERGED, A)
    assert served(a) == [BUNDLE]


def test_a_merge_obeyed_twice_is_done_once(halved: Job, a: Site) -> None:
    command = told_to_merge(halved, a)
    assert [obey(a.obeyer, command) for _ in range(2)] == [Obeyed.DONE] * 2
    assert a.broker.told == [f"merge {BUNDLE}"]
    assert served(a) == [BUNDLE]


@pytest.mark.parametrize("kept", HALVES)
def test_where_one_has_moved_on_both_stay(halved: Job, a: Site, kept: str) -> None:
    command = told_to_merge(halved, a)
    halved.keep(kept)
    # The lower one bears the command: kept, it is no longer to be obeyed, and a deadline frees the
    # upper one.
    stale = kept == HALVES[0]
    assert obey(a.obeyer, command) is (Obeyed.STALE if stale else Obeyed.DECLINED)
    assert states(halved) == [*APART[:2], State.MERGING if stale else State.OWNED]
    assert a.broker.told == []
    assert served(a) == list(HALVES)


def test_a_neighbour_that_is_merged_with_another_by_now_is_left_to_that(
    halved: Job, a: Site, client: Redis
) -> None:
    command = told_to_merge(halved, a)
    halved.keep(HALVES[1])
    again = msgspec.structs.replace(halved.record(HALVES[1]), state=State.MERGING, by="another")
    client.hset(ownership_key(halved.cluster), HALVES[1], msgspec.json.encode(again))
    assert obey(a.obeyer, command) is Obeyed.DECLINED
    assert states(halved) == [State.DELETED, State.OWNED, State.MERGING]
    assert served(a) == list(HALVES)


def test_a_part_that_is_not_loaded_is_loaded_with_the_whole(halved: Job, a: Site) -> None:
    command = told_to_merge(halved, a)
    a.broker.loaded.discard(HALVES[1])
    assert obey(a.obeyer, command) is Obeyed.DONE
    assert a.broker.told == [f"unload {HALVES[0]}", f"load {BUNDLE}"]
    assert served(a) == [BUNDLE]


class LosesAnswers(OwnershipStore):
    """Applies a request, or none of it, and gives no answer."""

    arrives = True

    def apply(
        self, cluster: str, transition: Transition, server_ms: int | None = None
    ) -> TransitionOutcome:
        if self.arrives:
            super().apply(cluster, transition, server_ms)
        raise StoreUnavailable("the answer was lost")


@pytest.mark.parametrize("arrives", [False, True])
@pytest.mark.parametrize("event", [Event.MERGE, Event.SPLIT])
def test_what_may_be_gone_is_not_served_until_an_answer_comes(
    halved: Job, a: Site, client: Redis, event: Event, arrives: bool
) -> None:
    command = told_to_merge(halved, a)
    if event is Event.SPLIT:
        obey(a.obeyer, command)
        halved.split(A)
        (command,) = a.commands()
    real, losing = a.obeyer.store, LosesAnswers(client)
    a.obeyer.store, losing.arrives = losing, arrives
    with pytest.raises(StoreUnavailable):
        obey(a.obeyer, command)
    assert served(a) == []
    a.obeyer.store = real
    assert obey(a.obeyer, command) is Obeyed.DONE
    assert served(a) == ([BUNDLE] if event is Event.MERGE else list(HALVES))


def test_both_parts_are_seen_merging_before_they_may_be_gone(
    halved: Job, a: Site, client: Redis
) -> None:
    """The store may lose that they were, and this broker alone knows their epochs then."""
    command = told_to_merge(halved, a)
    a.obeyer.store = losing = LosesAnswers(client)
    losing.arrives = False
    with pytest.raises(StoreUnavailable):
        obey(a.obeyer, command)
    for half in HALVES:
        assert a.obeyer.seen.record(half) == halved.record(half)


def test_while_the_store_is_closed_the_command_waits_and_both_are_served(
    halved: Job, a: Site, client: Redis
) -> None:
    """Also where it was emptied: what is asked is answered once its records are back."""
    command = told_to_merge(halved, a)
    closed, records = open_key(halved.cluster), ownership_key(halved.cluster)
    for key in (closed, records):
        client.rename(key, f"{key}:aside")
    with pytest.raises(Closed):
        obey(a.obeyer, command)
    assert served(a) == list(HALVES)
    for key in (closed, records):
        client.rename(f"{key}:aside", key)
    assert obey(a.obeyer, command) is Obeyed.DONE
    assert served(a) == [BUNDLE]


def test_a_store_that_forgot_the_merge_gives_nothing_back(
    halved: Job, a: Site, client: Redis
) -> None:
    """Nor by the command that made the parts, which it sends once more."""
    (*_, split) = a.seen
    command, key = told_to_merge(halved, a), ownership_key(halved.cluster)
    records = client.dump(key) or b""
    obey(a.obeyer, command)
    client.restore(key, 0, records, replace=True)
    client.delete(open_key(halved.cluster))

    for half in HALVES:
        a.obeyer.settle(half, halved.record(half))
    with pytest.raises(Closed):
        obey(a.obeyer, split)

    assert states(halved)[1:] == [State.MERGING] * 2
    assert served(a) == [BUNDLE]


def test_a_command_of_an_earlier_epoch_changes_nothing(halved: Job, a: Site) -> None:
    command = told_to_merge(halved, a)
    for half in HALVES:
        halved.keep(half)
    halved.merge(A)
    assert obey(a.obeyer, command) is Obeyed.STALE
    assert (a.broker.told, served(a)) == ([], list(HALVES))


def test_parts_of_two_owners_are_never_one(halved: Job, a: Site, client: Redis) -> None:
    b = Site(client, halved.cluster, B)
    halved.transfer(A, B, HALVES[1])
    a.obey()
    b.obey()
    with pytest.raises(NotPossible):
        halved.merge(A)
    assert (served(a), served(b)) == ([HALVES[0]], [HALVES[1]])
