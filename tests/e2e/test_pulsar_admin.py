"""Pulsar's own pulsar-admin, against trimtab, says what it says against real Pulsar brokers."""

from __future__ import annotations

import json
import os
import sysconfig
import time
import tomllib
import urllib.error
import urllib.request
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from agent.main import IdleBroker
from agent.reports.host import HostSampler
from agent.running import running
from agent.settings import AgentSettings
from deploy.kafka_server import KafkaServer
from deploy.ports import free_port
from deploy.process import Process
from deploy.redis_server import RedisServer
from tests.support.admin_script import (
    RECORDED,
    SCRIPT,
    differences,
    normalise,
    parse,
    places_of,
    read_answers,
    section,
)
from tests.support.green_server import green
from tests.support.jobs import QUICK, Driver, write_settings
from tests.support.plain_job import PlainJob, going_on
from tests.support.pulsar_admin import pulsar_admin
from tests.support.secrets import files_with
from tests.support.waiting import eventually
from trimtab.model import parse_bundle
from trimtab.shedding import DEFAULTS
from trimtab.store.ring import position
from trimtab.wire.reports.load_report import BundleStats, LocalBrokerData

CLUSTER = "standalone"
BROKERS = ("127.0.0.1:8080", "127.0.0.2:8080", "127.0.0.3:8080")
DIFFERENCES = tomllib.loads(SCRIPT.with_name("differences.toml").read_text("utf-8"))
"""Where trimtab answers otherwise: why, and the commands' names."""
START_S = 300.0
TOPICS: defaultdict[str, list[str]] = defaultdict(list)
"""The topics of each namespace that matter to a split: those of the script, and Pulsar's own."""
TOPICS["shop/one"] += [
    f"persistent://shop/one/{name}" for name in ("a", "b", "c", "d", "__change_events")
]


class BrokerWithTopics(IdleBroker):
    """Has those that the script creates, wherever their bundles go, as far as they are its own."""

    def __init__(self, broker: str, started_ms: int) -> None:
        super().__init__(broker, started_ms, HostSampler(nic_speed_gbits=10.0))

    def load_report(self) -> LocalBrokerData:
        report = super().load_report()
        report.last_stats = {
            bundle: BundleStats(topics=len(self.topics(bundle)))
            for bundle in sorted(self.bundles())
        }
        return report

    def topics(self, bundle: str) -> dict[int, tuple[float, ...]]:
        namespace, span = parse_bundle(bundle)
        positions = [position(topic) for topic in TOPICS[namespace]]
        return {at: (0.0,) * 4 for at in positions if span.low <= at < span.high}


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An API for the parts of the script that change nothing of one another; the job runs without
    Spark, which changes no answer. Its servers are its own: so is its cluster's name."""
    folder, settings = tmp_path_factory.mktemp("pulsar-admin"), DEFAULTS.changed(QUICK)
    with RedisServer(tmp_path_factory.mktemp("redis")) as redis_server:
        with (
            KafkaServer(folder / "kafka") as kafka,
            PlainJob(kafka.bootstrap, redis_server.url, CLUSTER, settings, "q-admin") as job,
            going_on(job),
            served(kafka, redis_server, folder) as address,
        ):
            yield address
        assert_no_secret_is_told(redis_server, folder)


def test_brokers_settings_and_domains_are_answered_as_pulsar_does(
    admin_class_path: str, url: str
) -> None:
    """The first part of the script, which nothing after it changes."""
    begin, _ = SCRIPT.read_text("utf-8").split("# tenants", 1)
    assert_answered_alike(begin, admin_class_path, url)


def test_migrations_are_answered_as_pulsar_does(admin_class_path: str, url: str) -> None:
    """The last part of the script: a cluster and a namespace are marked, and marked back."""
    script = section(SCRIPT.read_text("utf-8"), "migration")
    assert_answered_alike(script, admin_class_path, url)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_every_command_is_answered_as_pulsar_does_or_differs_as_documented(
    admin_class_path: str, kafka: KafkaServer, redis_server: RedisServer, tmp_path: Path
) -> None:
    driver = Driver(tmp_path, write_settings(tmp_path, kafka.bootstrap, redis_server.url))
    with ExitStack() as stack:
        stack.callback(driver.kill)
        driver.start()
        address = stack.enter_context(served(kafka, redis_server, tmp_path))
        assert_answered_alike(SCRIPT.read_text("utf-8"), admin_class_path, address)
    assert_no_secret_is_told(redis_server, tmp_path)


def assert_answered_alike(script: str, class_path: str, url: str) -> None:
    commands = list(parse(script))
    hosts = [(name, name.split(":")[0]) for name in BROKERS]
    brokers = [(name, f"http://{name}", f"pulsar://{host}:6650") for name, host in hosts]
    answered = {}
    with (
        pulsar_admin(class_path, url) as admin,
        green({"clusters": ["green"], "brokers/green": ["g:8080"]}) as other,
    ):
        places = places_of(CLUSTER, brokers, other)
        for each in commands:
            # What comes back claims its topics until it is there; Pulsar has no such time.
            eventually(lambda: not _come_back(url), "no migration is being rolled back", START_S)
            answered[each.name] = normalise(admin.run(each.arguments(places)), places)
    known = {name for why in DIFFERENCES.values() for name in why["commands"]}
    found = {each.name: each for each in differences(commands, read_answers(RECORDED), answered)}
    assert {name: each for name, each in found.items() if name not in known} == {}
    # What no longer differs leaves the file.
    assert known & answered.keys() - found.keys() == set()


def assert_no_secret_is_told(redis_server: RedisServer, folder: Path) -> None:
    """No log or file that was left behind has Redis' password."""
    assert any(file.suffix == ".log" for file in folder.rglob("*"))
    assert files_with(redis_server.password, folder) == []


@contextmanager
def served(kafka: KafkaServer, redis_server: RedisServer, folder: Path) -> Iterator[str]:
    """Three brokers without load and the API, whose URL this yields once it knows them."""
    servers = {
        "TRIMTAB_KAFKA__BOOTSTRAP": kafka.bootstrap,
        "TRIMTAB_REDIS_URL": redis_server.url,
    }
    port = free_port()
    with ExitStack() as stack:
        for name in BROKERS:
            broker = BrokerWithTopics(name, time.time_ns() // 1_000_000)
            settings = AgentSettings(CLUSTER, name, broker.started_ms, report_interval=0.1)
            stack.enter_context(running(broker, settings, kafka.bootstrap, redis_server.url))
        api = _program(folder, servers, "trimtab", "api", "--port", str(port))
        stack.callback(api.kill)
        url = f"http://127.0.0.1:{port}"
        api.start(lambda: _brokers(url) == set(BROKERS), START_S)
        yield url


def _program(folder: Path, servers: Mapping[str, str], program: str, *arguments: str) -> Process:
    return Process(
        program,
        [str(Path(sysconfig.get_path("scripts")) / program), *arguments],
        folder=folder,
        log=folder / f"{program}-{len(list(folder.iterdir()))}.log",
        environment={**os.environ, **servers},
    )


def _come_back(url: str) -> bool:
    """Whether a migration is being rolled back."""
    with urllib.request.urlopen(f"{url}/trimtab/v1/clusters/{CLUSTER}/migrations") as answer:
        return any(each["migration"]["state"] == "rolling-back" for each in json.load(answer))


def _brokers(url: str) -> set[str]:
    """Those that the API lists; none while it does not."""
    try:
        with urllib.request.urlopen(f"{url}/admin/v2/brokers") as answer:
            return set(json.load(answer))
    except (urllib.error.URLError, ConnectionError):
        return set()
