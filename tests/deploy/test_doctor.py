"""Every finding that is not ok says what to type next."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

import pytest
import redis

from deploy import doctor, jars, service_checks
from deploy.finding import Finding
from deploy.kafka_server import KafkaServer
from deploy.ports import free_port
from deploy.redis_server import RedisServer


def names(findings: list[Finding], *, ok: bool) -> list[str]:
    assert all(finding.ok or finding.next_command for finding in findings)
    return [finding.name for finding in findings if finding.ok is ok]


def test_this_environment_is_as_locked() -> None:
    assert doctor.check_python().ok
    assert doctor.check_packages() == Finding(
        "packages", True, f"as locked; PySpark {version('pyspark')}"
    )


def test_a_package_of_another_version_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {"pandas": "3.1.1"}
    monkeypatch.setattr(doctor, "version", lambda name: found.get(name) or version(name))
    finding = doctor.check_packages()
    assert not finding.ok
    assert finding.detail == f"pandas 3.1.1 (locked {version('pandas')})"
    assert "--require-hashes" in finding.next_command


def test_a_java_home_without_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert doctor.check_jdk().next_command == "unset JAVA_HOME"


@pytest.mark.parametrize(
    ("modules", "complaint"),
    [
        pytest.param("java.base@11.0.2", "11.0.2, needs 17 or newer", id="too old"),
        pytest.param("java.base@21", "21 lacks jdk.incubator.vector", id="trimmed"),
        pytest.param("", "something else, needs 17 or newer", id="not a JDK"),
    ],
)
def test_a_java_that_spark_cannot_use(
    modules: str, complaint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text(f"#!/bin/sh\necho '{modules}'\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert complaint in doctor.check_jdk().detail


def test_missing_jars_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    finding = doctor.check_jars()
    assert finding.detail.startswith(f"{len(jars.locked())} of {len(jars.locked())} (")
    assert finding.next_command.endswith(" -m deploy.jars")


def test_services_that_do_not_answer_are_named_without_their_password(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(service_checks, "_SECONDS", 1)
    address = f"127.0.0.1:{free_port()}"
    findings = [
        *service_checks.check_kafka(address),
        *service_checks.check_redis(f"redis://:hunter2@{address}/0"),
    ]
    assert names(findings, ok=False) == ["Kafka", "Redis"]
    assert all(address in finding.detail for finding in findings)
    assert not any("hunter2" in f"{finding}" for finding in findings)


@pytest.mark.e2e
def test_the_embedded_services_pass(kafka: KafkaServer, redis_server: RedisServer) -> None:
    findings = [
        *service_checks.check_kafka(kafka.bootstrap),
        *service_checks.check_redis(redis_server.url),
    ]
    assert names(findings, ok=False) == []
    assert names([*service_checks.check_kafka(kafka.port)], ok=False) == ["Kafka port"]


def test_a_forgetful_redis_is_told_how_to_remember(tmp_path: Path) -> None:
    with RedisServer(tmp_path) as server:
        with redis.Redis.from_url(server.url) as client:
            client.config_set("appendonly", "no")
            client.config_set("maxmemory-policy", "allkeys-lru")
        findings = [*service_checks.check_redis(server.url)]
    assert names(findings, ok=False) == ["Redis appendonly", "Redis maxmemory-policy"]
    assert findings[1].next_command.endswith("CONFIG SET appendonly yes")
