"""What the lock files promise, read as a user would."""

from __future__ import annotations

import ast
import re
import sys
from importlib.metadata import packages_distributions
from importlib.resources import files
from pathlib import Path

import pytest

from deploy import jars
from deploy.relock import ADMIN_LOCK, EXAMPLE_LOCK, JAVA_BROKER, PULSAR_ADMIN

ROOT = Path(__file__).parents[2]
NOT_FOR_USERS = {
    # An extra, which the command asks for.
    "admin/top/app.py: textual",
    # A benchmark of the page, which a developer runs.
    "benchmarks/page.py: playwright",
    # Makes the boards that are shipped.
    "deploy/dashboards/rendering.py: grafana_foundation_sdk",
}
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
    "api",
    "control",
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


def _locked(lock: str) -> dict[str, str]:
    """Each package of a lock, with its version and hashes."""
    text = files("deploy").joinpath(lock).read_text("utf-8")
    entries = re.findall(r"^([\w.-]+)(==(?:[^\n]*\\\n)*[^\n]*)", text, re.MULTILINE)
    return {canonical(name): " ".join(rest.split()) for name, rest in entries}


def test_what_users_install_is_part_of_what_is_tested() -> None:
    users, tested = _locked("requirements.lock"), _locked("requirements-dev.lock")
    assert len(users) > 30
    assert users.items() <= tested.items()


def test_what_the_programs_import_is_in_the_lock_of_users() -> None:
    locked, owners = _locked("requirements.lock"), packages_distributions()
    lacking = {
        f"{file.relative_to(ROOT)}: {name}"
        for package in PACKAGES
        for file in (ROOT / package).rglob("*.py")
        for name in _imported(file) - {*PACKAGES, *sys.stdlib_module_names}
        if not any(canonical(owner) in locked for owner in owners.get(name, ()))
    }
    assert lacking == NOT_FOR_USERS


def _imported(file: Path) -> set[str]:
    """The packages that a file names in imports."""
    nodes = [*ast.walk(ast.parse(file.read_text("utf-8")))]
    modules = [node.module for node in nodes if isinstance(node, ast.ImportFrom)]
    modules += [each.name for node in nodes if isinstance(node, ast.Import) for each in node.names]
    return {module.partition(".")[0] for module in modules if module}


def canonical(name: str) -> str:
    """A distribution's name as packaging compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()
