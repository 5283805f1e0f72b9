"""Brokers that lose or get a lease are announced once; an unknown broker is not announced."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field

import msgspec
import pytest
from structlog.testing import capture_logs

from sinks.errors import Damaged, KafkaUnavailable, SinkError, StoreUnavailable
from sinks.exposition import Exposition
from sinks.kafka.publisher import Outgoing
from sinks.redis.leasing.lease_scan import Owners
from streaming.watch.intent_publisher import IntentPublisher
from streaming.watch.lease_watcher import REDIS, LeaseWatcher
from streaming.watch.server_clock import ServerClock
from trimtab.doubt import Doubt
from trimtab.wire.intent import Intent, IntentKind
from trimtab.wire.keys import CONTROL

WINDOW, MARGIN = 10.0, 1.0


@dataclass
class World:
    """Redis, Kafka and the job, as the watcher sees them; a look is a quarter of a second."""

    owning: set[str] = field(default_factory=set)
    unreadable: tuple[str, ...] = ()
    """Bundles whose records are damaged."""
    leases: set[str] = field(default_factory=set)
    left: dict[str, float] = field(default_factory=dict)
    """Seconds of a lease, where not 8 of 10."""
    open_to: int | None = 5
    away: SinkError | None = None
    deaf: SinkError | None = None
    ahead: float = 0.0
    """Of the server's clock."""
    now: float = 100.0
    clusters: frozenset[str] = frozenset({"c"})
    generation: int = 5
    read: int = 0
    """Times that all records were read."""
    asked: int = 0
    """Times that it was asked what is left of leases."""
    sent: list[Outgoing] = field(default_factory=list)
    vouched: list[tuple[str, int]] = field(default_factory=list)
    """Clusters in which the server's clock was said to be right, and at what time."""

    def __post_init__(self) -> None:
        self.shown = Exposition()
        self.intent_publisher = IntentPublisher(self.publish, lambda: self.generation)
        clock = ServerClock(self.time, lambda: self.now, WINDOW, MARGIN)
        self.watcher = LeaseWatcher(self, clock, self, self.intent_publisher, self.shown)

    def time(self) -> float:
        if self.away is not None:
            raise self.away
        return self.now + self.ahead

    def owners(self, cluster: str) -> Owners:  # noqa: ARG002 - the Protocol's
        self.read += 1
        return Owners(set(self.owning), self.unreadable)

    def changed(self, known: Mapping[str, Set[str]], generation: int) -> set[str]:
        is_open = self.open_to == generation
        return {each for each, held in known.items() if held != self.leases or not is_open}

    def alive(
        self,
        cluster: str,  # noqa: ARG002 - the Protocol's
        generation: int,
        known: Iterable[str],  # noqa: ARG002 - the Protocol's
    ) -> dict[str, float] | None:
        self.asked += 1
        held = {broker: self.left.get(broker, 8.0) for broker in self.leases}
        return held if self.open_to == generation else None

    def vouch(self, clusters: Iterable[str], server_ms: int) -> None:
        self.vouched += [(cluster, server_ms) for cluster in clusters]

    def publish(self, records: Sequence[Outgoing]) -> None:
        if self.deaf is not None:
            raise self.deaf
        self.sent += records

    def look(self, times: int = 1) -> list[str]:
        """What was published after so many looks, in order."""
        before = len(self.sent)
        for _ in range(times):
            self.now += 0.25
            self.watcher.look()
        return [told(record) for record in self.sent[before:]]


def told(record: Outgoing) -> str:
    assert record.topic == CONTROL
    intent = msgspec.json.decode(record.value, type=Intent)
    assert record.key == intent.cluster == "c"
    if intent.kind is IntentKind.DOUBT:
        return f"{intent.name} {intent.level.value}"
    return f"{intent.kind.value} {intent.broker}"


def settled(**state: object) -> World:
    """A world of which everything has been said."""
    world = World(**state)  # type: ignore[arg-type]  # fields by name
    world.look(2)
    world.sent.clear()
    return world


def test_at_first_owners_without_a_lease_are_lost_and_all_others_have_joined() -> None:
    world = World(owning={"a:1", "b:1", "c:1"}, leases={"b:1", "new:1"})
    assert world.look() == [
        "redis stable",
        "broker-lost a:1",
        "broker-lost c:1",
        "broker-joined b:1",
        "broker-joined new:1",
    ]
    assert world.look(5) == []
    assert world.read == 1


def test_damaged_records_are_told_once_and_hide_no_broker() -> None:
    world = World(owning={"a:1"}, leases={"a:1"}, unreadable=("t/n/0x00000000_0x80000000",))
    with capture_logs() as told:
        assert world.look(3) == ["redis stable", "broker-joined a:1"]
        world.open_to = None
        world.look()
        world.open_to = world.generation
        world.look()
    assert world.read == 2
    assert [line["first"] for line in told if line["event"] == "records ignored"] == [
        ["t/n/0x00000000_0x80000000: it cannot be read"]
    ]
    labels = {"cluster": "c", "source": "store"}
    counted = world.shown.registry.get_sample_value("trimtab_ignored_records_total", labels)
    assert counted == 1


def test_a_loss_names_those_that_have_missed_a_renewal() -> None:
    world = settled(leases={"a:1", "b:1", "c:1", "d:1"})
    world.leases, world.left = {"b:1", "c:1", "d:1"}, {"b:1": 1.0, "c:1": 3.0, "d:1": 6.0}
    world.look()
    (lost,) = (msgspec.json.decode(record.value, type=Intent) for record in world.sent)
    assert (lost.kind, lost.broker, lost.brokers) == (IntentKind.BROKER_LOST, "a:1", ("b:1", "c:1"))


def test_those_that_are_late_are_named_once_a_look_and_a_thousand_at_once() -> None:
    """A fleet that falls silent must not make intents that grow with its square."""
    fleet = [f"{'b' * 240}-{number:04}:8080" for number in range(2500)]
    world = settled(leases={"a:1", "x:1", "z:1", *fleet})
    world.leases, world.left = set(fleet), dict.fromkeys(fleet, 1.0)
    world.look()
    told = [msgspec.json.decode(record.value, type=Intent) for record in world.sent]
    assert [(each.broker, each.page, len(each.brokers)) for each in told] == [
        ("a:1", 1, 1000),
        ("a:1", 2, 1000),
        ("a:1", 3, 500),
        ("x:1", 4, 0),
        ("z:1", 5, 0),
    ]
    assert sorted(name for each in told for name in each.brokers) == fleet
    assert max(len(record.value) for record in world.sent) < 1 << 20


def test_a_fleet_that_does_not_change_is_rarely_asked_what_is_left_of_its_leases() -> None:
    world = settled(leases={"a:1", "b:1"})
    world.asked = 0
    world.look(100)
    assert world.asked == 5


def test_how_long_leases_last_is_learnt_of_a_fleet_that_does_not_change() -> None:
    world = settled(leases={"a:1", "b:1"}, left={"b:1": 4.0})
    world.left = {"b:1": 8.0}
    world.look(20)
    world.leases, world.left = {"b:1"}, {"b:1": 4.0}
    world.look()
    (lost,) = (msgspec.json.decode(record.value, type=Intent) for record in world.sent)
    assert (lost.broker, lost.brokers) == ("a:1", ("b:1",))


def test_a_log_line_names_some_of_those_whose_leases_have_changed_and_counts_all() -> None:
    fleet = {f"b-{number}:1" for number in range(7)}
    with capture_logs() as told:
        world = settled(leases=fleet)
        world.leases = {"new:1"}
        world.look()
    leases = [line for line in told if line["event"].startswith("leases")]
    assert [(line["event"], line["number"], len(line["first"])) for line in leases] == [
        ("leases have begun", 7, 5),
        ("leases have ended", 7, 5),
        ("leases have begun", 1, 1),
    ]


def test_later_each_change_is_said_once() -> None:
    world = settled(leases={"a:1", "b:1"})
    world.leases = {"b:1", "c:1"}
    assert world.look(3) == ["broker-lost a:1", "broker-joined c:1"]
    world.leases = {"a:1", "b:1", "c:1"}
    assert world.look(3) == ["broker-joined a:1"]
    assert world.shown.registry.get_sample_value("trimtab_leases", {"cluster": "c"}) == 3


def test_a_broker_that_was_refused_for_want_of_a_lease_is_lost_until_it_has_one() -> None:
    world = settled(leases={"a:1"})
    world.watcher.suspect("c", {"a:1", "never:1"})
    assert world.look(3) == ["broker-lost never:1"]
    world.leases = {"a:1", "never:1"}
    assert world.look(3) == ["broker-joined never:1"]


def test_one_that_got_its_lease_meanwhile_has_joined() -> None:
    world = settled(leases={"a:1"})
    world.watcher.suspect("c", {"new:1"})
    world.leases = {"a:1", "new:1"}
    assert world.look(3) == ["broker-joined new:1"]


def test_while_there_is_no_answer_a_refused_broker_waits() -> None:
    world = settled(leases={"a:1"})
    world.away = StoreUnavailable("no answer")
    world.watcher.suspect("c", {"never:1"})
    assert world.look(3) == []
    world.away = None
    assert world.look(3) == ["broker-lost never:1"]


@pytest.mark.parametrize(
    "gone",
    [
        pytest.param({"open_to": None}, id="a closed store"),
        pytest.param({"open_to": 6}, id="another job's store"),
        pytest.param({"away": StoreUnavailable("no answer")}, id="an absent Redis"),
    ],
)
def test_what_does_not_answer_says_nothing_of_brokers(gone: dict[str, object]) -> None:
    world = settled(owning={"a:1"}, leases={"a:1", "b:1"})
    world.leases = set()
    for name, value in gone.items():
        setattr(world, name, value)
    assert world.look(20) == []
    assert world.read == 1


def test_a_store_that_closes_while_its_records_are_read_says_nothing_of_brokers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(owning={"a:1"}, leases={"a:1"})

    def read(_cluster: str) -> Owners:
        world.open_to = None
        return Owners(set(world.owning))

    monkeypatch.setattr(world, "owners", read)
    assert world.look(3) == []


def test_a_store_that_was_closed_is_learned_again() -> None:
    """Its leases were gone, and its records rebuilt: what was known before need not be so."""
    world = settled(owning={"a:1"}, leases={"a:1", "b:1"})
    world.open_to, world.leases = None, set()
    world.look()
    world.open_to, world.generation = 7, 7
    world.owning, world.leases = {"a:1", "d:1"}, {"a:1"}
    assert world.look(2) == ["broker-lost d:1", "broker-joined a:1"]


def test_a_damaged_cluster_hides_no_loss_in_another(monkeypatch: pytest.MonkeyPatch) -> None:
    world = settled(leases={"a:1"})
    world.clusters, alive = frozenset({"b", "c"}), world.alive

    def read(cluster: str, generation: int, known: Iterable[str]) -> dict[str, float] | None:
        if cluster == "b":
            raise Damaged("WRONGTYPE")
        return alive(cluster, generation, known)

    monkeypatch.setattr(world, "alive", read)
    world.leases = set()
    assert world.look() == ["broker-lost a:1"]


def test_an_absent_kafka_is_told_later_in_order_and_by_the_same_ids() -> None:
    world = settled(leases={"a:1"})
    world.deaf = KafkaUnavailable("no answer")
    world.leases = set()
    assert world.look() == []
    world.leases = {"a:1"}
    assert world.look() == []
    world.deaf = None
    assert world.look(2) == ["broker-lost a:1", "broker-joined a:1"]


def test_ids_are_the_generations_and_in_order() -> None:
    world = World(leases={"a:1"})
    world.look()
    world.generation = world.open_to = 9
    world.leases = {"b:1"}
    world.look(2)
    intents = [msgspec.json.decode(record.value, type=Intent) for record in world.sent]
    ids = [intent.id for intent in intents]
    assert ids == ["watcher/5/1", "watcher/5/2", "watcher/9/3", "watcher/9/4"]
    assert [intent.generation for intent in intents] == [5, 5, 9, 9]


def test_a_doubt_is_said_once_a_change() -> None:
    world = settled()
    for level in (Doubt.STABLE, Doubt.UNSTABLE, Doubt.UNSTABLE, Doubt.STABLE):
        world.intent_publisher.doubt("c", REDIS, level)
    assert world.look() == ["redis unstable", "redis stable"]


def test_a_steady_clock_is_said_to_be_so_once_it_was_seen_for_a_lease() -> None:
    world = settled()
    assert world.look(int(WINDOW / 0.25) - 3) == []
    assert world.look(100) == ["clock stable"]


@pytest.mark.parametrize("jump", [1.5, -1.5])
def test_a_clock_that_jumps_is_doubted_for_a_lease(jump: float) -> None:
    world = settled()
    world.look(50)
    world.ahead += jump
    assert world.look() == ["clock unstable"]
    assert drift(world) == pytest.approx(1.5)
    assert world.look(int(WINDOW / 0.25)) == []
    assert world.look(2) == ["clock stable"]


def test_a_jump_within_the_brokers_margin_does_not_count() -> None:
    world = settled()
    world.look(50)
    world.ahead += 0.9
    assert world.look(50) == []


def test_small_steps_within_a_lease_add_up() -> None:
    world = settled()
    world.look(50)
    said = []
    for _ in range(4):
        world.ahead += 0.4
        said += world.look(4)
    assert said == ["clock unstable"]


def test_a_clock_that_jumps_between_two_looks_is_found_out() -> None:
    world = settled()
    world.look(50)
    world.away = StoreUnavailable("no answer")
    world.look(100)
    world.away, world.ahead = None, 2.0
    assert world.look() == ["clock unstable"]


def drift(world: World) -> float | None:
    return world.shown.registry.get_sample_value("trimtab_redis_clock_drift_seconds")


def test_a_clock_that_was_watched_for_a_lease_is_vouched_for_until_it_jumps() -> None:
    world = World()
    world.look(39)
    assert world.vouched == []
    world.look(2)
    assert world.vouched == [("c", round(1000 * world.now))]
    world.ahead = 30.0
    world.look(4)
    assert len(world.vouched) == 1
