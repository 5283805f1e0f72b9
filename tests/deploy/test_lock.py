"""What the lock files promise, read as a user would."""

from __future__ import annotations

import re
from importlib.metadata import packages_distributions
from importlib.resources import files

import pytest

from deploy import jars
from deploy.relock import ADMIN_LOCK, EXAMPLE_LOCK, JAVA_BROKER, PULSAR_ADMIN

PACKAGES = (
    "trimtab",
    "sources",
    "sinks",
    "streaming",
    "agent",
    "admin",
    "simulation",
    "deploy",
    "benchmarks",
    "model",
)


@pytest.mark.parametrize("package", PACKAGES)
def test_import_name_is_ours_alone(package: str) -> None:
    assert set(packages_distributions()[package]) == {"trimtab"}


def test_spark_is_given_the_jars_it_lacks() -> None:
    assert [jar.path.name for jar in jars.list_locked("connector")] == [
        "commons-pool2-2.13.1.jar",
        "kafka-clients-3.9.2.jar",
        "spark-sql-kafka-0-10_2.13-4.2.0.jar",
        "spark-token-provider-kafka-0-10_2.13-4.0.0.jar",
        "hadoop-bare-naked-local-fs-0.1.0.jar",
    ]


def test_kafka_comes_with_a_voice() -> None:
    names = {jar.coordinate.rsplit(":", 1)[0] for jar in jars.list_locked("kafka")}
    assert {"org.apache.kafka:kafka_2.13", "org.apache.logging.log4j:log4j-slf4j-impl"} <= names


def test_the_example_in_java_has_the_jars_that_it_asks_for() -> None:
    named = [jar.coordinate for jar in jars.list_locked(lock=EXAMPLE_LOCK)]
    assert set(named) >= set(JAVA_BROKER)
    assert [name for name in named if "slf4j" in name] == [
        "org.slf4j:slf4j-api:1.7.36",
        "org.slf4j:slf4j-nop:1.7.36",
    ]


def test_pulsar_admin_has_just_the_jars_that_are_named() -> None:
    named = [jar.coordinate for jar in jars.list_locked(lock=ADMIN_LOCK)]
    assert named == sorted(PULSAR_ADMIN)


def test_no_two_jars_share_a_file() -> None:
    paths = [jar.path for jar in jars.list_locked()]
    assert len(set(paths)) == len(paths)


@pytest.mark.parametrize("lock", ["requirements.lock", "requirements-dev.lock", "jars.lock"])
def test_no_lock_names_a_registry(lock: str) -> None:
    text = files("deploy").joinpath(lock).read_text("utf-8")
    assert not re.search(r"https?://|--(extra-)?index-url|--find-links|file:", text)
