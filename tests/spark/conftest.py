"""One Spark session, one Kafka and one Redis for every test here; a test names its own cluster."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from deploy import jars
from deploy.kafka_server import KafkaServer
from deploy.redis_server import RedisServer
from sinks.kafka.publisher import Publisher
from sinks.kafka.topics import TOPICS
from streaming.config import SparkConfig, load_config
from streaming.query.session import spark_session
from tests.support.class_archive import quick_options
from tests.support.jobs import write_settings
from tests.support.new_topics import recreate_topics
from tests.support.refused_sockets import refused_sockets_collected
from tests.support.running import Running
from trimtab.wire.keys import GENERATIONS


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.spark)


@pytest.fixture(autouse=True)
def no_refused_socket_left() -> Iterator[None]:
    """Agents of these tests run in this process, while jobs and servers that they use end."""
    with refused_sockets_collected():
        yield


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    jars.fetch()
    config = SparkConfig(
        master="local[2,4]",
        jars=jars.connector_jars(),
        shuffle_partitions=2,
        conf={"spark.driver.extraJavaOptions": quick_options()},
    )
    session = spark_session(config, "tests")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def apart(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaServer]:
    jars.fetch()
    with KafkaServer(tmp_path_factory.mktemp("kafka")) as server:
        yield server


@pytest.fixture
def kafka(apart: KafkaServer) -> KafkaServer:
    """A Kafka of these tests alone: the job's topics are as the job makes them.

    They are empty: a job reads them from their beginning, and would carry on the clusters of the
    tests before.
    """
    recreate_topics(apart.bootstrap, *(topic.name for topic in TOPICS if topic.name != GENERATIONS))
    return apart


@pytest.fixture
def publisher(kafka: KafkaServer) -> Publisher:
    return Publisher(kafka.bootstrap, {"message.max.bytes": str(32 << 20)})


@pytest.fixture
def running(
    spark: SparkSession, kafka: KafkaServer, redis_server: RedisServer, tmp_path: Path
) -> Running:
    """A job that is not started yet."""
    settings = write_settings(tmp_path, kafka.bootstrap, redis_server.url)
    return Running(load_config(settings), spark)
