"""The broker in Java, compiled, and a Kafka of a test's own."""

from __future__ import annotations

import os
import runpy
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from admin.conformance.program import Told
from deploy import jars
from deploy.kafka_server import KafkaServer, java
from deploy.process import Process
from sinks.kafka.topics import ensure_topics
from tests.support import pulsar_admin

JAVAC = Path(java()).with_name("javac")
BUILD = Path(__file__).parents[2] / "examples" / "java-broker" / "build.py"


@pytest.fixture(scope="session")
def command(tmp_path_factory: pytest.TempPathFactory) -> str:
    """How the broker is started; compiling it warns of nothing."""
    if shutil.which(JAVAC) is None:
        pytest.skip("there is no javac")
    start = runpy.run_path(str(BUILD))["build"](tmp_path_factory.mktemp("java-broker"))
    return f"{java()} @{start}"


@pytest.fixture(scope="session")
def admin_class_path(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Pulsar's own pulsar-admin, and what runs it many times in one JVM."""
    if shutil.which(JAVAC) is None:
        pytest.skip("there is no javac")
    return pulsar_admin.build(tmp_path_factory.mktemp("pulsar-admin"))


@pytest.fixture
def kafka(tmp_path: Path) -> Iterator[KafkaServer]:
    """Apart from the other tests' Kafka: the job's topics are as the job makes them."""
    jars.fetch()
    with KafkaServer(tmp_path / "kafka") as server:
        yield server


@pytest.fixture
def java_broker(command: str, kafka: KafkaServer, tmp_path: Path) -> Callable[[Told], Process]:
    """Makes the broker, not yet started, that reports to the test's Kafka, which has the topics."""
    ensure_topics(kafka.bootstrap)

    def make(told: Told) -> Process:
        return Process(
            "the broker in Java",
            command.split(),
            folder=tmp_path,
            log=tmp_path / "java.log",
            environment={**os.environ, **told.environment(), "TRIMTAB_KAFKA": kafka.bootstrap},
        )

    return make
