"""The job on executors of their own: what local[*] shares with its driver must be found there.

None of its processes shows Redis's password.
"""

from __future__ import annotations

from pathlib import Path

from deploy import jars
from deploy.kafka_server import KafkaServer
from deploy.redis_server import RedisServer
from simulation.fleet import Fleet, FleetSettings
from simulation.load_model import load_model
from simulation.profile import Profile
from tests.support.jobs import Driver, write_settings
from tests.support.running import PATIENCE
from tests.support.secrets import files_with
from tests.support.waiting import eventually

CLUSTER = "apart"
MASTER = "local-cluster[2,1,1024]"
FLEET = Profile(brokers=3, bundles=12, namespaces=1, low=0.2, high=0.8)


def test_commands_come_out(kafka: KafkaServer, redis_server: RedisServer, tmp_path: Path) -> None:
    jars.fetch()
    file = write_settings(tmp_path, kafka.bootstrap, redis_server.url, spark={"master": MASTER})
    driver = Driver(tmp_path, file)
    fleet = Fleet(load_model(FLEET), FleetSettings(kafka.bootstrap, redis_server.url, CLUSTER, 0.5))
    driver.start()
    fleet.start()
    try:
        # Not in the streams: commands that an agent has obeyed are deleted there.
        eventually(lambda: not driver.running or transfers(fleet), "a transfer", PATIENCE)
        assert driver.running, driver.said()[-3000:]
        lines = driver.command_lines()
        assert len(lines) > 1
        assert [line for line in lines if any(redis_server.password in word for word in line)] == []
    finally:
        fleet.stop()
        driver.kill()
    assert transfers(fleet)
    assert files_with(redis_server.password, tmp_path) == []


def transfers(fleet: Fleet) -> int:
    """How many transfers were obeyed."""
    obeyed = [agent.obeyed() for agent in fleet._agents]
    return sum(count for each in obeyed for (kind, _), count in each.items() if kind == "transfer")
