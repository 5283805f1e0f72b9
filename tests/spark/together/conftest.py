"""One job for all tests here; each test has its own cluster. The last test, that of unreadable
input, ends the job and replays everything that it has decided.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner, Result

from admin import cli
from deploy.kafka_server import KafkaServer
from deploy.redis_server import RedisServer
from simulation.fleet import Fleet, FleetSettings
from simulation.load_model import LoadModel
from sinks.kafka.topics import TOPICS
from streaming.config import load_config
from streaming.query.spark_checks import check_checkpoint, check_connector
from tests.support.jobs import QUICK, write_settings
from tests.support.new_topics import recreate_topics
from tests.support.running import PATIENCE, Running
from trimtab.wire.keys import GENERATIONS

SETTINGS = {
    **QUICK,
    "round.shedding": "overload",
    "round.placement": "least-long-term-rate",
    "migration.check": 0.1,
}
"""No broker is overloaded: only what a test asks for moves or splits."""


@dataclass
class Stage:
    """The running job, and its settings file."""

    running: Running
    file: Path
    redis_url: str

    @property
    def kafka(self) -> str:
        return self.running.config.kafka.bootstrap

    def fleet(self, model: LoadModel, cluster: str) -> Fleet:
        return Fleet(model, FleetSettings(self.kafka, self.redis_url, cluster, 0.5))

    def trimtab(self, cluster: str, *words: str) -> Result:
        """Run an operator's command."""
        where = ["--cluster", cluster, "--config", str(self.file)]
        return CliRunner().invoke(cli.build_app(words[:1]), [*words, *where])

    def set(self, cluster: str, *assignments: str) -> None:
        """Change settings of this cluster only."""
        words = ("config", "set", *assignments, "--wait", str(PATIENCE), "--execute")
        done = self.trimtab(cluster, *words)
        assert done.exit_code == 0, done.output


@pytest.fixture(scope="package")
def stage(
    spark: SparkSession,
    apart: KafkaServer,
    redis_server: RedisServer,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Stage]:
    recreate_topics(apart.bootstrap, *(topic.name for topic in TOPICS if topic.name != GENERATIONS))
    folder = tmp_path_factory.mktemp("together")
    file = write_settings(folder, apart.bootstrap, redis_server.url, SETTINGS)
    config = load_config(file)
    check_connector(spark, config)
    check_checkpoint(spark, config)
    with Running(config, spark) as running:
        yield Stage(running, file, redis_server.url)
