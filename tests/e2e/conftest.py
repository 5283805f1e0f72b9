"""The broker in Java, compiled, and a Kafka of a test's own."""

from __future__ import annotations

import runpy
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy import jars
from deploy.kafka_server import KafkaServer, java

JAVAC = Path(java()).with_name("javac")
BUILD = Path(__file__).parents[2] / "examples" / "java-broker" / "build.py"


@pytest.fixture(scope="session")
def command(tmp_path_factory: pytest.TempPathFactory) -> str:
    """How the broker is started; compiling it warns of nothing."""
    if shutil.which(JAVAC) is None:
        pytest.skip("there is no javac")
    start = runpy.run_path(str(BUILD))["build"](tmp_path_factory.mktemp("java-broker"))
    return f"{java()} @{start}"


@pytest.fixture
def kafka(tmp_path: Path) -> Iterator[KafkaServer]:
    """Apart from the other tests' Kafka: the job's topics are as the job makes them."""
    jars.fetch()
    with KafkaServer(tmp_path / "kafka") as server:
        yield server
