"""A broker in Java, written from docs/wire.md alone, keeps the rules and joins a fleet."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import cycle, islice
from pathlib import Path
from threading import Event

import msgspec
import pytest
import redis
from typer.testing import CliRunner

from admin import cli
from admin.conformance.program import Told, shown
from admin.conformance.rules import RULES
from admin.conformance.run import play, started
from admin.exit_codes import OK
from deploy.kafka_server import KafkaServer
from deploy.ports import free_port
from deploy.process import Process
from deploy.redis_server import RedisServer
from simulation.fleet import Fleet, FleetSettings
from simulation.load_model import load_model
from simulation.profile import Profile
from simulation.replay.recorded import RecordedTopics
from sinks.redis.ownership_store import OwnershipStore
from tests.support.commands import published
from tests.support.jobs import QUICK, Driver, write_settings
from tests.support.waiting import eventually
from trimtab.ownership import State
from trimtab.store.requests import is_of_a_broker
from trimtab.wire import keys
from trimtab.wire.reports.load_report import LocalBrokerData

CLUSTER = "polyglot"
BROKER = "127.0.0.1:8080"
FLEET = Profile(brokers=3, bundles=24, namespaces=2, low=0.3, high=0.6, noise=0.0, message_rate=0.5)
"""Few messages that cost much: those of the broker in Java are the more."""
SETTINGS = {**QUICK, "unload.min_rate": 0.1, "unload.min_throughput": 0.0}
MESSAGES = 40
PATIENCE = 600.0
START_S = 300.0
SOURCES = sorted((Path(__file__).parents[2] / "examples" / "java-broker" / "src").rglob("*.java"))
MOST_LINES = 400


def test_it_serves_releases_and_hands_over_as_the_wire_says(
    command: str, redis_server: RedisServer, tmp_path: Path
) -> None:
    rules = ["serves", "unloads", "hands-over"]
    verdicts = list(play(redis_server.url, started(command, tmp_path), rules, "java-some"))
    assert [verdict for verdict in verdicts if verdict.reason] == []


def test_it_is_as_short_as_a_reader_may_expect() -> None:
    """Without blank lines and comments."""
    lines = [line.strip() for each in SOURCES for line in each.read_text().splitlines()]
    code = [line for line in lines if line and not line.startswith(("//", "/*", "*"))]
    assert len(code) <= MOST_LINES


def test_its_reports_are_what_the_job_reads(
    java_broker: Callable[[Told], Process], kafka: KafkaServer, redis_server: RedisServer
) -> None:
    served = f"127.0.0.1:{free_port()}"
    broker = java_broker(Told(redis=redis_server.url, cluster="c", broker="b:1", served=served))
    topics = RecordedTopics(kafka.bootstrap)
    broker.start(lambda: shown(served) is not None, START_S)
    try:
        eventually(lambda: any(topics.all(keys.LOAD_REPORTS)), "a report", PATIENCE, 1.0)
    finally:
        broker.stop()
    report = next(iter(topics.all(keys.LOAD_REPORTS)))
    assert report.key == b"c/b:1"
    said = msgspec.json.decode(report.value or b"")
    assert (said["bundles"], said["lastStats"], said["numBundles"]) == ([], {}, 0)
    assert msgspec.convert(said, LocalBrokerData).start_timestamp == said["startTimestamp"]


@pytest.mark.slow
def test_it_keeps_every_rule(command: str, redis_server: RedisServer, tmp_path: Path) -> None:
    verdicts = list(play(redis_server.url, started(command, tmp_path), prefix="java"))
    assert [verdict.rule for verdict in verdicts] == list(RULES)
    assert [verdict for verdict in verdicts if verdict.reason] == []


# kafka-python, in the agents, leaves the socket of a refused connection to the garbage collector.
@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
@pytest.mark.slow
def test_a_fleet_gives_it_bundles_relieves_it_and_takes_over_when_it_is_killed(
    java_broker: Callable[[Told], Process],
    kafka: KafkaServer,
    redis_server: RedisServer,
    client: redis.Redis,
    tmp_path: Path,
) -> None:
    store, topics = OwnershipStore(client), RecordedTopics(kafka.bootstrap)
    told = Told(
        redis=redis_server.url,
        cluster=CLUSTER,
        broker=BROKER,
        served=f"127.0.0.1:{free_port()}",
    )
    broker = java_broker(told)
    driver = Driver(tmp_path, write_settings(tmp_path, kafka.bootstrap, redis_server.url, SETTINGS))
    model = load_model(FLEET)
    fleet = Fleet(model, FleetSettings(kafka.bootstrap, redis_server.url, CLUSTER, 0.5))

    def owned() -> list[str]:
        standing = store.records(CLUSTER).items()
        return [name for name, record in standing if record.owner == BROKER]

    def handed_over() -> bool:
        """Whether it has told another broker to own a bundle, and the job has heard of it."""
        commands = published(topics.all(keys.COMMANDS))
        return any(is_of_a_broker(each.id) and each.source == BROKER for each in commands)

    broker.start(lambda: shown(told.served) is not None, START_S)
    driver.start()
    fleet.start()
    try:
        eventually(lambda: len(owned()) >= 3, "three bundles for the broker in Java", PATIENCE)
        eventually(lambda: set(shown(told.served) or {}) == set(owned()) != set(), "service")
        elsewhere = next(name for name in model.bundles if name not in owned())
        assert publish(told.served, elsewhere, b"not here") == 503
        with loading(told.served):
            eventually(handed_over, "a bundle given away when it is loaded", PATIENCE, 1.0)
        broker.kill()
        eventually(lambda: not owned(), "its bundles on other brokers", PATIENCE)
        eventually(lambda: all_served(store, model.brokers), "service", PATIENCE)
        audited = ["audit", "--kafka", kafka.bootstrap, "--cluster", CLUSTER]
        assert CliRunner().invoke(cli.build_app(), audited).exit_code == OK
    finally:
        fleet.stop()
        driver.kill()
        broker.kill()


def all_served(store: OwnershipStore, brokers: Sequence[str]) -> bool:
    """Whether every bundle is served by one of these brokers."""
    standing = store.records(CLUSTER).values()
    return all(each.state is State.OWNED and each.owner in brokers for each in standing)


@contextmanager
def loading(served: str) -> Iterator[None]:
    """Publish a million bytes a second at most, over all bundles that it serves."""
    done = Event()

    def publish_to_all() -> None:
        while not done.wait(1.0):
            for bundle in islice(cycle(shown(served) or {}), MESSAGES):
                publish(served, bundle, b"." * (1_000_000 // MESSAGES))

    with ThreadPoolExecutor(1) as pool:
        publishing = pool.submit(publish_to_all)
        try:
            yield
        finally:
            done.set()
        publishing.result()


def publish(served: str, bundle: str, message: bytes) -> int:
    """The status of a message's answer."""
    url = f"http://{served}/bundles/{bundle}"
    try:
        with urllib.request.urlopen(url, message, timeout=30.0) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as refused:
        return refused.code
