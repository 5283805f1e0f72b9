"""What a rebuild takes from a store, a journal and brokers that may say anything."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest
import redis
from structlog.testing import capture_logs

from sinks.errors import Misconfigured, StoreUnavailable
from sinks.exposition import Exposition
from sinks.redis.cluster_gate import ClusterGate
from sinks.redis.leasing.lease import Renewal
from sinks.redis.leasing.leases import Leases
from sinks.redis.ownership_store import OwnershipStore
from streaming.leader.leadership import Leadership
from streaming.leader.store_opening import StoreOpener
from tests.support.opening import close, indexed, keep_alive
from trimtab.model import NO_EPOCH, Epoch
from trimtab.ownership import Event, State
from trimtab.wire import keys
from trimtab.wire.assertion import Assertion
from trimtab.wire.ownership import Record, Transition

pytestmark = pytest.mark.e2e

LOW, HIGH = "t/n/0x00000000_0x80000000", "t/n/0x80000000_0xffffffff"
WHOLE = "t/n/0x00000000_0xffffffff"
A, B = "a:8080", "b:8080"
ABSURD = 9_000_000_000_000_000


def owned(generation: int, owner: str = A) -> Record:
    return Record(state=State.OWNED, epoch=Epoch(generation, 7), owner=owner)


@dataclass
class Claimed:
    """A `streaming.leader.leadership.Claim` that Kafka gave."""

    generation: int

    def assert_held(self) -> None: ...

    def bid_farewell(self) -> None: ...

    def close(self) -> None: ...


@dataclass
class Job:
    """Opens one cluster; ``generations`` are those that Kafka gives it, one after another."""

    client: redis.Redis
    cluster: str
    journal: dict[str, Record] = field(default_factory=dict)
    generations: tuple[int, ...] = (5,)

    def __post_init__(self) -> None:
        self.shown = Exposition()
        self.store = OwnershipStore(self.client)

    def say(self, broker: str, **records: Record) -> None:
        """To the store, which no job has opened yet."""
        names = {"low": LOW, "high": HIGH}
        said = Assertion(records={names.get(name, name): r for name, r in records.items()})
        held = Leases(self.client).renew(self.cluster, broker, 1, 10_000, said)
        assert held.renewal is Renewal.ASSERTED

    def opener(self, gate: ClusterGate) -> StoreOpener:
        """One that waits for no broker."""
        given = iter(self.generations)
        self.leadership = Leadership(lambda *_: Claimed(next(given)), self.shown)
        return StoreOpener(
            gate,
            self.store,
            lambda _: self.journal,
            self.leadership,
            self.shown,
            closed_for_ms=0,
        )

    def open(self) -> list[Any]:
        """Open it; what was logged."""
        opener = self.opener(ClusterGate(self.client))
        with capture_logs() as said:
            opener.open(self.cluster)
        return said

    def ignored(self, source: str) -> float | None:
        return self.shown.registry.get_sample_value(
            "trimtab_ignored_records_total", {"cluster": self.cluster, "source": source}
        )

    def moves(self, bundle: str, epoch: Epoch) -> bool:
        """Whether its owner may release it: no record is frozen."""
        keep_alive(self.client, self.cluster, (A, B))
        asked = Transition(
            id=f"release {bundle}", bundle=bundle, event=Event.RELEASE, expect=epoch, actor=A
        )
        return self.store.apply(self.cluster, asked).accepted


@pytest.fixture
def job(client: redis.Redis, request: pytest.FixtureRequest) -> Job:
    return Job(client, str(request.node.name))


def test_above_generations_that_kafka_forgot_a_new_one_is_claimed(job: Job) -> None:
    """The topic was made again and the store emptied: brokers and journal know what was."""
    job.generations = (5, 900)
    job.journal = {LOW: owned(300)}
    job.say(A, high=owned(700))

    said = job.open()

    assert job.leadership.generation == 900
    assert job.store.records(job.cluster) == {LOW: owned(300), HIGH: owned(700)}
    restored = {
        source: job.shown.registry.get_sample_value(
            "trimtab_restored_records_total", {"cluster": job.cluster, "source": source}
        )
        for source in ("journal", "brokers")
    }
    assert restored == {"journal": 1, "brokers": 1}
    assert job.moves(HIGH, Epoch(700, 7))
    told = [each for each in said if "generations" in each["event"]]
    assert [(each["newest"], each["generation"]) for each in told] == [(700, 5)]


class Interrupted(ClusterGate):
    """The server is lost once, when the records are restored and the cluster is not open yet."""

    lost = False

    def note_owned(self, cluster: str, generation: int, bundles: Sequence[str]) -> None:
        if not self.lost:
            self.lost = True
            raise StoreUnavailable("the server is lost")
        super().note_owned(cluster, generation, bundles)


def test_a_rebuild_that_is_interrupted_makes_no_record_twice_in_one_generation(job: Job) -> None:
    """Only one child of a split is heard of before; with the other, which is claimed then, the
    records that the first rebuild made would have the same epochs."""
    job.generations = (5, 6)
    job.journal = {WHOLE: owned(3)}
    job.say(A, low=Record(state=State.OWNED, epoch=Epoch(3, 8), owner=A))
    opener = job.opener(Interrupted(job.client))
    with pytest.raises(StoreUnavailable):
        opener.open(job.cluster)
    assert job.store.records(job.cluster)[HIGH].epoch == Epoch(5, 9)
    job.client.delete(keys.ownership_key(job.cluster), keys.journal_key(job.cluster))

    job.say(B, high=Record(state=State.OWNED, epoch=Epoch(3, 8), owner=B))
    opener.open(job.cluster)

    records = job.store.records(job.cluster)
    assert records[HIGH].owner == B
    assert records[WHOLE].epoch == Epoch(6, 8)


def test_a_rebuild_that_is_interrupted_goes_on_in_its_generation_if_it_made_no_record(
    job: Job,
) -> None:
    job.journal = {LOW: owned(3), HIGH: owned(4)}
    opener = job.opener(Interrupted(job.client))
    with pytest.raises(StoreUnavailable):
        opener.open(job.cluster)
    opener.open(job.cluster)
    assert job.store.records(job.cluster) == job.journal


def test_a_name_that_is_not_utf8_is_not_read_as_a_bundle(job: Job) -> None:
    job.client.hset(keys.ownership_key(job.cluster), b"t/n\xff/0x00000000_0xffffffff", b"{}")
    said = job.open()
    assert job.store.records(job.cluster) == {}
    assert indexed(job.client, job.cluster) == []
    assert job.ignored("store") == 1
    assert [each["number"] for each in said if each["event"] == "records ignored"] == [1]


def test_where_kafka_gives_none_above_them_nothing_is_restored(job: Job) -> None:
    job.generations = (5, 6)
    job.journal = {LOW: owned(300)}
    with pytest.raises(Misconfigured, match="300"):
        job.open()
    assert job.store.records(job.cluster) == {}


def test_a_rebuilt_store_knows_each_brokers_bundles(job: Job) -> None:
    """One of a job of an older version has noted none."""
    job.client.hset(keys.ownership_key(job.cluster), LOW, msgspec.json.encode(owned(3)))
    job.journal = {HIGH: owned(3)}
    job.open()
    assert job.store.records_of(job.cluster, A) == {LOW: owned(3), HIGH: owned(3)}


def test_what_a_broker_says_of_a_generation_beyond_all_is_ignored_and_told(job: Job) -> None:
    job.journal = {LOW: owned(3), HIGH: owned(3)}
    job.say(B, low=owned(ABSURD, B))
    job.say(A, high=owned(4))

    said = job.open()

    assert job.leadership.generation == 5
    assert job.store.records(job.cluster) == {LOW: owned(3), HIGH: owned(4)}
    [told] = [each for each in said if each["event"] == "records ignored"]
    assert (told["source"], told["number"]) == (B, 1)
    assert LOW in told["first"][0]
    assert job.ignored("brokers") == 1
    assert job.moves(LOW, Epoch(3, 7))


def test_such_a_record_is_not_restored_from_the_journal_either(job: Job) -> None:
    job.journal = {LOW: owned(ABSURD, B), HIGH: owned(3)}
    job.open()
    assert job.store.records(job.cluster) == {HIGH: owned(3)}
    assert job.ignored("journal") == 1


def test_a_record_that_froze_in_the_store_gives_way_to_what_is_known(job: Job) -> None:
    frozen = {LOW: msgspec.json.encode(owned(ABSURD, B)), HIGH: b"?", "t/n/x": b"{}"}
    for bundle, text in frozen.items():
        job.client.hset(keys.ownership_key(job.cluster), bundle, text)
    job.journal = {LOW: owned(3)}

    job.open()

    records = job.store.readable_records(job.cluster).records
    assert records[LOW] == owned(3)
    assert (records[HIGH].state, records[HIGH].epoch.generation) == (State.FREE, 5)
    assert job.moves(LOW, Epoch(3, 7))
    assert job.ignored("store") == 3


def test_an_unreadable_note_of_a_broker_stops_no_rebuild(job: Job) -> None:
    job.client.set(keys.assertion_key(job.cluster, close(job.client, job.cluster), B), b"\xff")
    job.say(A, low=owned(4))
    job.journal = {HIGH: owned(3)}

    said = job.open()

    assert job.store.records(job.cluster) == {LOW: owned(4), HIGH: owned(3)}
    assert [each["source"] for each in said if each["event"] == "records ignored"] == [B]
    assert job.ignored("brokers") == 1


def test_what_was_in_a_journal_that_an_operator_deleted_is_journalled_again(job: Job) -> None:
    """Spark would know the older record for ever, and ask with its epoch."""
    job.client.hset(keys.ownership_key(job.cluster), LOW, msgspec.json.encode(owned(3)))
    job.client.hset(keys.ownership_key(job.cluster), HIGH, msgspec.json.encode(owned(4)))
    job.journal = {LOW: owned(2), HIGH: owned(4)}

    job.open()

    assert job.client.smembers(keys.unjournalled_key(job.cluster)) == {LOW.encode()}


@pytest.mark.parametrize("kind", ["entries", "a text"])
def test_what_still_waits_in_the_journal_is_not_journalled_twice(job: Job, kind: str) -> None:
    """A journal that is no stream is reported by the relay, and deleted first."""
    if kind == "entries":
        job.client.xadd(keys.journal_key(job.cluster), {"change": "x"})
    else:
        job.client.set(keys.journal_key(job.cluster), "text")
    job.client.hset(keys.ownership_key(job.cluster), LOW, msgspec.json.encode(owned(3)))
    job.journal = {LOW: owned(2)}

    job.open()

    assert job.client.scard(keys.unjournalled_key(job.cluster)) == 0


def test_what_waits_in_the_journal_is_restored_where_the_records_were_deleted(job: Job) -> None:
    """Nothing else may know it: the relay has not copied it, and its broker lost its disk."""
    job.generations = (5, 6)
    job.open()
    keep_alive(job.client, job.cluster, (A,))
    for bundle in (LOW, HIGH):
        asked = Transition(id=bundle, bundle=bundle, event=Event.CLAIM, expect=NO_EPOCH, actor=A)
        assert job.store.apply(job.cluster, asked).accepted
    before = job.store.records(job.cluster)
    journal = keys.journal_key(job.cluster)
    job.client.xadd(journal, {"change": "x"})
    job.client.delete(keys.ownership_key(job.cluster))

    job.generations = (6,)
    job.open()

    assert job.store.records(job.cluster) == before
    assert indexed(job.client, job.cluster) == [LOW, HIGH]
    assert job.client.xlen(journal) == 3
    assert job.moves(HIGH, before[HIGH].epoch)
