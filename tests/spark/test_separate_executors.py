"""The job on executors of their own: what local[*] shares with its driver must be found there."""

from __future__ import annotations

from pathlib import Path

import pytest

from deploy import jars
from deploy.kafka_server import KafkaServer
from deploy.redis_server import RedisServer
from simulation.fleet import Fleet, FleetSettings
from simulation.load_model import load_model
from simulation.profile import Profile
from sinks.connections import redis_client
from tests.support.commands import in_streams
from tests.support.jobs import Driver, write_settings
from tests.support.running import PATIENCE
from tests.support.waiting import eventually
from trimtab.wire.command import Kind

CLUSTER = "apart"
MASTER = "local-cluster[2,1,1024]"
FLEET = Profile(brokers=3, bundles=12, namespaces=1, low=0.2, high=0.8)


@pytest.mark.slow
def test_commands_come_out(kafka: KafkaServer, redis_server: RedisServer, tmp_path: Path) -> None:
    jars.fetch()
    file = write_settings(tmp_path, kafka.bootstrap, redis_server.url, spark={"master": MASTER})
    driver = Driver(tmp_path, file)
    fleet = Fleet(load_model(FLEET), FleetSettings(kafka.bootstrap, redis_server.url, CLUSTER, 0.5))
    with redis_client(redis_server.url) as client:
        driver.start()
        fleet.start()
        try:
            eventually(
                lambda: not driver.running or in_streams(client, CLUSTER), "a command", PATIENCE
            )
            assert driver.running, driver.said()[-3000:]
            told = {command.kind for command in in_streams(client, CLUSTER)}
        finally:
            fleet.stop()
            driver.kill()
    assert Kind.TRANSFER in told
