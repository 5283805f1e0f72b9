"""The broker in Java among nine others, while the way to Redis is slow, silent, one-way or cut."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Event

import pytest
import redis
from typer.testing import CliRunner

from admin import cli
from admin.conformance.program import Told, shown
from admin.exit_codes import OK
from deploy.kafka_server import KafkaServer
from deploy.ports import free_port
from deploy.process import Process
from deploy.redis_server import RedisServer
from simulation.fleet import Fleet, FleetSettings
from simulation.load_model import load_model
from simulation.profile import Profile
from sinks.redis.ownership_store import OwnershipStore
from tests.faults.proxy import Proxy
from tests.support.jobs import QUICK, Driver, write_settings
from tests.support.waiting import eventually
from trimtab.ownership import State

CLUSTER = "ten"
BROKER = "127.0.0.1:8090"
FLEET = Profile(brokers=9, bundles=54, namespaces=3, low=0.3, high=0.6, noise=0.0, message_rate=0.5)
SETTINGS = {**QUICK, "unload.min_rate": 0.1, "unload.min_throughput": 0.0}
PATIENCE = 300.0
START_S = 300.0
LOOKS = 5


# kafka-python, in the agents, leaves the socket of a refused connection to the garbage collector.
@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_no_bundle_is_served_twice_while_it_loses_its_way_to_redis(
    java_broker: Callable[[Told], Process],
    kafka: KafkaServer,
    redis_server: RedisServer,
    client: redis.Redis,
    tmp_path: Path,
) -> None:
    store, model = OwnershipStore(client), load_model(FLEET)
    driver = Driver(tmp_path, write_settings(tmp_path, kafka.bootstrap, redis_server.url, SETTINGS))

    def owned() -> list[str]:
        return [b for b, record in store.records(CLUSTER).items() if record.owner == BROKER]

    def in_use() -> None:
        """Wait until it serves what it owns, and that is something."""
        eventually(lambda: set(shown(told.served) or {}) == set(owned()) != set(), "use", PATIENCE)

    def taken_over() -> None:
        """Wait until all bundles are served by others, and have been looked at since."""
        everything = set(store.records(CLUSTER))
        eventually(lambda: {bundle for _, bundle in fleet.served()} == everything, "all", PATIENCE)
        enough = seen.looks + LOOKS
        eventually(lambda: seen.looks > enough, "looks", PATIENCE)

    with Proxy(redis_server.port) as its_link, Proxy(redis_server.port, 1) as others_link:
        told = Told(
            redis=through(its_link, redis_server),
            cluster=CLUSTER,
            broker=BROKER,
            served=f"127.0.0.1:{free_port()}",
        )
        broker = java_broker(told)
        others = through(others_link, redis_server)
        fleet = Fleet(model, FleetSettings(kafka.bootstrap, others, CLUSTER, 0.5))
        broker.start(lambda: shown(told.served) is not None, START_S)
        driver.start()
        fleet.start()
        try:
            with watching(fleet, told.served) as seen:
                in_use()
                others_link.slow(0.02, 0.03)
                its_link.slow(0.02, 0.03)
                its_link.hold()
                taken_over()
                its_link.release()
                in_use()
                its_link.hold(up=False)
                taken_over()
                its_link.release()
                in_use()
                its_link.hold(down=False)
                taken_over()
                its_link.release()
                in_use()
                its_link.cut()
                its_link.mend()
                in_use()
            assert seen.twice == []
            eventually(lambda: all_owned(store), "every bundle is served", PATIENCE)
            audited = ["audit", "--kafka", kafka.bootstrap, "--cluster", CLUSTER]
            assert CliRunner().invoke(cli.build_app(), audited).exit_code == OK
        finally:
            fleet.stop()
            driver.kill()
            broker.kill()


def through(link: Proxy, server: RedisServer) -> str:
    """The server's URL, by way of the proxy."""
    return server.url.replace(f":{server.port}/", f":{link.port}/")


def all_owned(store: OwnershipStore) -> bool:
    return all(record.state is State.OWNED for record in store.records(CLUSTER).values())


class Seen:
    """What was seen of the fleet: how often, and the bundles that two brokers served."""

    def __init__(self) -> None:
        self.looks = 0
        self.twice: list[tuple[str, str]] = []


@contextmanager
def watching(fleet: Fleet, served: str) -> Iterator[Seen]:
    """Look again and again whether a bundle that the broker shows is served elsewhere."""
    seen, done = Seen(), Event()

    def look() -> None:
        while not done.wait(0.05):
            before = fleet.served()
            its = shown(served)
            # Served by another both before and after the answer: so in its instant too.
            throughout = before & fleet.served()
            if its is not None:
                seen.looks += 1
                seen.twice += [each for each in throughout if each[1] in its]

    with ThreadPoolExecutor(1) as pool:
        looking = pool.submit(look)
        try:
            yield seen
        finally:
            done.set()
        looking.result()
