"""What a broker does when the job commands, and what it answers to the store."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec
import pytest
from redis import Redis

from agent.commands.actions import obey
from agent.commands.obeying import Obeyed
from agent.ports import Store
from sinks.errors import Closed, StoreUnavailable
from sinks.redis.ownership_store import OwnershipStore
from tests.agent.support import BUNDLE, HALVES, A, B, Job, Site, lines
from trimtab.ownership import Event, State
from trimtab.settings.words import BY_POSITIONS
from trimtab.wire.command import CommandKind
from trimtab.wire.keys import lease_key, open_key, owned_key, ownership_key
from trimtab.wire.ownership import Record, Transition, TransitionOutcome


@pytest.fixture
def owned(job: Job, a: Site) -> Job:
    """A job whose bundle ``a`` serves."""
    job.assign(A)
    assert a.obey() == [Obeyed.DONE]
    a.broker.told.clear()
    return job


def test_an_assigned_bundle_is_loaded_and_then_served(job: Job, a: Site) -> None:
    job.assign(A)
    assert not a.holdings.serves(BUNDLE)
    assert a.obey() == [Obeyed.DONE]
    assert a.broker.told == lines(["load"])
    assert (job.record().state, job.record().owner) == (State.OWNED, A)
    assert a.holdings.serves(BUNDLE)


def test_an_unloaded_bundle_is_drained_and_given_up(
    owned: Job, a: Site, client: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In this order: turned away, drained, given up; then any broker may take it."""
    drain, order = a.broker.unload, list[tuple[str, bool, State]]()

    def draining(bundle: str) -> None:
        order.append((bundle, a.holdings.serves(bundle), owned.record().state))
        drain(bundle)

    monkeypatch.setattr(a.broker, "unload", draining)
    held = owned.record().epoch
    owned.unload(A)
    assert a.holdings.serves(BUNDLE)
    assert a.obey() == [Obeyed.DONE]
    assert order == [(BUNDLE, False, State.RELEASING)]
    assert a.broker.told == lines(["unload"])
    record = owned.record()
    assert (record.state, record.owner, record.destination) == (State.FREE, None, None)
    assert record.epoch > held
    assert client.smembers(owned_key(owned.cluster, A)) == set()
    assert not a.holdings.serves(BUNDLE)
    assert BUNDLE not in a.broker.bundles()
    owned.assign(B)
    assert (owned.record().state, owned.record().owner) == (State.ASSIGNING, B)


@pytest.mark.parametrize("moved", [False, True], ids=["unload", "transfer"])
def test_clients_are_turned_away_before_a_bundle_is_drained(
    owned: Job, a: Site, monkeypatch: pytest.MonkeyPatch, *, moved: bool
) -> None:
    """And it is given up only then."""
    drain, seen = a.broker.unload, list[tuple[bool, State]]()

    def draining(bundle: str) -> None:
        seen.append((a.holdings.serves(bundle), owned.record().state))
        drain(bundle)

    monkeypatch.setattr(a.broker, "unload", draining)
    if moved:
        owned.transfer(A, B)
    else:
        owned.unload(A)
    a.obey()
    assert seen == [(False, State.RELEASING)]


@pytest.mark.parametrize(
    "ask",
    [
        pytest.param(lambda site, job: site.obeyer.claim(BUNDLE, job.record()), id="claim"),
        pytest.param(lambda site, _: site.obeyer.give_up(BUNDLE), id="release"),
    ],
)
def test_a_process_that_a_later_one_has_replaced_changes_no_record(
    owned: Job, a: Site, client: Redis, ask: Callable[[Site, Job], object]
) -> None:
    client.set(lease_key(owned.cluster, A), "+2")
    before = owned.record()
    ask(a, owned)
    assert owned.record() == before


def test_it_does_not_answer_a_command_either(owned: Job, a: Site, client: Redis) -> None:
    owned.unload(A)
    client.set(lease_key(owned.cluster, A), "+2")
    before = owned.record()
    assert a.obey() == [Obeyed.REFUSED]
    assert owned.record() == before


def test_a_transfer_hands_the_bundle_over(owned: Job, a: Site, b: Site) -> None:
    owned.transfer(A, B)
    assert b.obey() == [Obeyed.DONE]
    assert b.broker.told == lines(["prepare"])
    assert not b.holdings.serves(BUNDLE)

    assert a.obey() == [Obeyed.DONE]
    assert a.broker.told == lines(["unload"])
    assert (owned.record().state, owned.record().owner) == (State.ASSIGNING, B)

    assert b.obey() == [Obeyed.DONE]
    assert (owned.record().state, owned.record().owner) == (State.OWNED, B)
    assert (a.holdings.serves(BUNDLE), b.holdings.serves(BUNDLE)) == (False, True)


def test_the_destination_has_as_long_as_the_source_had(owned: Job, a: Site, b: Site) -> None:
    owned.transfer(A, B)
    a.obey()
    own = next(command for command in b.commands() if command.kind is CommandKind.OWN)
    assert own.deadline - own.issued_at == 30_000
    assert own.source == A


def test_a_command_that_the_job_took_back_changes_nothing(owned: Job, a: Site) -> None:
    owned.unload(A)
    late = a.commands()
    owned.keep()
    assert [obey(a.obeyer, command) for command in late] == [Obeyed.STALE]
    assert a.broker.told == []
    assert a.holdings.serves(BUNDLE)


def test_a_command_obeyed_twice_is_done_once(owned: Job, a: Site) -> None:
    owned.unload(A)
    (command,) = a.commands()
    assert [obey(a.obeyer, command) for _ in range(2)] == [Obeyed.DONE] * 2
    assert a.broker.told == lines(["unload"])


class Failing:
    """A store that goes away after so many answers."""

    def __init__(self, real: Store, after: int) -> None:
        self._real, self._left = real, after

    def apply(
        self, cluster: str, transition: Transition, server_ms: int | None = None
    ) -> TransitionOutcome:
        self._count()
        return self._real.apply(cluster, transition, server_ms)

    def apply_all(
        self, cluster: str, transitions: Sequence[Transition]
    ) -> tuple[TransitionOutcome, ...]:
        self._count()
        return self._real.apply_all(cluster, transitions)

    def record(self, cluster: str, bundle: str) -> Record | None:
        self._count()
        return self._real.record(cluster, bundle)

    def records_of(
        self, cluster: str, broker: str, besides: Iterable[str] = ()
    ) -> dict[str, Record]:
        self._count()
        return self._real.records_of(cluster, broker, besides)

    def _count(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise StoreUnavailable("gone")


def test_a_command_whose_follow_up_was_cut_short_is_taken_up_again(owned: Job, a: Site) -> None:
    owned.split(A)
    (command,) = a.commands()
    real, a.obeyer.store = a.obeyer.store, Failing(a.obeyer.store, after=1)
    with pytest.raises(StoreUnavailable):
        obey(a.obeyer, command)
    a.obeyer.store = real
    assert obey(a.obeyer, command) is Obeyed.DONE
    assert all(a.holdings.serves(half) for half in HALVES)


def test_a_bundle_is_taken_over_in_two_requests(job: Job, a: Site) -> None:
    """Its record, and the report: what is asked besides delays every hand-over."""
    job.assign(A)
    a.obeyer.store = Failing(a.obeyer.store, after=2)
    assert a.obey() == [Obeyed.DONE]


def test_commands_that_arrive_in_the_wrong_order_leave_the_newest_in_force(
    owned: Job, a: Site
) -> None:
    owned.unload(A)
    (unload,) = a.commands()
    obey(a.obeyer, unload)
    owned.assign(A)
    (own,) = a.commands()
    assert obey(a.obeyer, own) is Obeyed.DONE
    assert obey(a.obeyer, unload) is Obeyed.STALE
    assert a.holdings.serves(BUNDLE)


def test_an_epoch_once_seen_outlives_a_store_that_forgot_it(
    owned: Job, a: Site, client: Redis
) -> None:
    owned.unload(A)
    (command,) = a.commands()
    older = msgspec.structs.replace(command, epoch=owned.record().epoch._replace(counter=1))
    obey(a.obeyer, command)
    client.hdel(ownership_key(owned.cluster), BUNDLE)
    assert obey(a.obeyer, older) is Obeyed.STALE


def test_a_broker_that_cannot_load_declines(job: Job, a: Site) -> None:
    a.broker.broken = True
    job.assign(A)
    assert a.obey() == [Obeyed.DECLINED]
    assert (job.record().state, job.record().owner) == (State.FREE, None)
    assert not a.holdings.serves(BUNDLE)


def test_a_refused_broker_follows_the_record(
    owned: Job, client: Redis, cluster: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job keeps the bundle where it is after the broker looked and before it reports."""
    site = Site(client, cluster, A, BUNDLE)
    owned.unload(A)
    drain = site.broker.unload

    def kept_meanwhile(bundle: str) -> None:
        drain(bundle)
        owned.keep()

    monkeypatch.setattr(site.broker, "unload", kept_meanwhile)
    assert site.obey() == [Obeyed.REFUSED]
    assert site.broker.told == lines(["unload", "load"])
    assert site.holdings.serves(BUNDLE)


def test_a_divided_bundle_is_served_as_its_halves(owned: Job, a: Site) -> None:
    owned.split(A)
    assert a.obey() == [Obeyed.DONE]
    assert a.broker.told == lines(["split"])
    assert owned.record().state is State.DELETED
    assert [owned.record(half).owner for half in HALVES] == [A, A]
    assert [a.holdings.serves(name) for name in (BUNDLE, *HALVES)] == [False, True, True]


def test_a_bundle_that_cannot_be_divided_stays_whole(owned: Job, a: Site) -> None:
    """With one topic there is nothing to share out."""
    a.broker.positions = [17]
    owned.split(A, "topic_count_equally_divide")
    assert a.obey() == [Obeyed.DECLINED]
    assert a.broker.told == []
    assert (owned.record().state, owned.record().owner) == (State.OWNED, A)
    assert a.holdings.serves(BUNDLE)


def test_the_owners_topics_say_where_a_bundle_is_divided(owned: Job, a: Site) -> None:
    a.broker.positions = [10, 20, 30, 50]
    owned.split(A, "topic_count_equally_divide")
    assert a.obey() == [Obeyed.DONE]
    assert a.holdings.bundles() == ("t/ns/0x00000000_0x00000019", "t/ns/0x00000019_0xffffffff")


def test_a_bundle_is_not_divided_by_an_algorithm_that_this_version_lacks(
    owned: Job, a: Site
) -> None:
    owned.split(A, "of_a_later_version")
    assert a.obey() == [Obeyed.DECLINED]
    assert (owned.record().state, owned.record().owner) == (State.OWNED, A)


def test_a_bundle_is_divided_at_the_positions_of_its_command(owned: Job, a: Site) -> None:
    """Pulsar's documents split at 0x33000000; what is outside is left out, as there."""
    a.broker.positions = [10, 20]
    owned.split(A, BY_POSITIONS, 0x77000000, 0x33000000, 0)
    assert a.obey() == [Obeyed.DONE]
    assert a.holdings.bundles() == (
        "t/ns/0x00000000_0x33000000",
        "t/ns/0x33000000_0x77000000",
        "t/ns/0x77000000_0xffffffff",
    )


@pytest.mark.parametrize(
    ("topics", "asked", "flaw"),
    [
        ([10, 20], (BY_POSITIONS,), "no position is given"),
        (
            [10, 20],
            (BY_POSITIONS, 0, 0xFFFFFFFF, -1, 1 << 40),
            "a boundary does not lie inside it",
        ),
        ([10, 20], (BY_POSITIONS, 15, 15), "two boundaries are equal"),
        ([10], (BY_POSITIONS, 15), "it has fewer than two topics"),
        ([10], ("topic_count_equally_divide",), "it has fewer than two topics"),
        ([10, 20], ("flow_or_qps_equally_divide",), "no need to split it"),
        ([10, 20], ("of_a_later_version",), "does not know the algorithm"),
    ],
)
def test_a_broker_that_declines_to_divide_says_why(
    owned: Job, a: Site, topics: list[int], asked: tuple[Any, ...], flaw: str
) -> None:
    said: list[tuple[str, str]] = []
    a.obeyer.declined = lambda command, why: said.append((command.bundle, why))
    a.broker.positions = topics
    owned.split(A, *asked)
    assert a.obey() == [Obeyed.DECLINED]
    [(bundle, why)] = said
    assert (bundle, flaw in why) == (BUNDLE, True)
    assert a.holdings.serves(BUNDLE)


class LosesAnswers(OwnershipStore):
    """Applies the first request and loses the answer."""

    lost = 0

    def apply(
        self, cluster: str, transition: Transition, server_ms: int | None = None
    ) -> TransitionOutcome:
        outcome = super().apply(cluster, transition, server_ms)
        if self.lost == 0:
            self.lost += 1
            raise StoreUnavailable("the answer was lost")
        return outcome


def test_a_lost_answer_is_asked_for_again(owned: Job, a: Site, client: Redis) -> None:
    a.obeyer.store = LosesAnswers(client)
    owned.unload(A)
    (command,) = a.commands()
    with pytest.raises(StoreUnavailable):
        obey(a.obeyer, command)
    assert not a.holdings.serves(BUNDLE)
    assert obey(a.obeyer, command) is Obeyed.DONE
    assert a.broker.told == lines(["unload"])
    assert owned.record().state is State.FREE


def test_a_division_whose_answer_was_lost_stands(owned: Job, a: Site, client: Redis) -> None:
    """Asked again, the broker's topics would say something else."""
    a.obeyer.store = LosesAnswers(client)
    a.broker.positions = [10, 20]
    owned.split(A, "topic_count_equally_divide")
    (command,) = a.commands()
    with pytest.raises(StoreUnavailable):
        obey(a.obeyer, command)
    a.broker.positions = [100, 200]
    assert obey(a.obeyer, command) is Obeyed.DONE
    assert a.holdings.bundles() == ("t/ns/0x00000000_0x0000000f", "t/ns/0x0000000f_0xffffffff")


def test_while_the_store_is_closed_a_command_stays_open(owned: Job, a: Site, client: Redis) -> None:
    owned.unload(A)
    (command,) = a.commands()
    key = open_key(owned.cluster)
    client.rename(key, f"{key}:aside")
    with pytest.raises(Closed):
        obey(a.obeyer, command)
    client.rename(f"{key}:aside", key)
    assert obey(a.obeyer, command) is Obeyed.DONE
    assert owned.record().state is State.FREE


def test_what_stays_after_all_is_served_once_an_open_store_says_so(
    owned: Job, a: Site, client: Redis
) -> None:
    """The record of a closed one may be long out of date."""
    owned.unload(A)
    a.commands()
    a.obeyer.stop_serving(BUNDLE)
    owned.ask(Event.KEEP, None, {A: CommandKind.OWN})
    (own,) = a.commands()
    key = open_key(owned.cluster)
    client.rename(key, f"{key}:aside")
    with pytest.raises(Closed):
        obey(a.obeyer, own)
    assert not a.holdings.serves(BUNDLE)
    client.rename(f"{key}:aside", key)
    assert obey(a.obeyer, own) is Obeyed.DONE
    assert a.holdings.serves(BUNDLE)


def test_a_process_that_died_after_a_split_is_not_told_of_it_again_without_the_bundle(
    owned: Job, client: Redis, cluster: str, a: Site
) -> None:
    """The next process of its name reads the command again, and has loaded the halves."""
    owned.split(A)
    (command,) = a.commands()
    obey(a.obeyer, command)
    assert a.broker.told[-1] == f"split {BUNDLE}"

    later = Site(client, cluster, A, *HALVES)
    obey(later.obeyer, command)

    assert later.broker.told == []
    assert later.broker.loaded == {*HALVES}
