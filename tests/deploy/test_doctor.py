"""Every finding that is not ok says what to type next."""

from __future__ import annotations

import re
import shlex
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path

import pytest
import redis

from deploy import doctor, jars, service_checks
from deploy.finding import Finding
from deploy.kafka_server import KafkaServer
from deploy.ports import free_port
from deploy.redis_acl import Role, acl_line
from deploy.redis_server import RedisServer
from deploy.sentinel_server import NAME, SentinelServer
from tests.support.redis_cluster import clustered
from tests.support.waiting import eventually
from trimtab.wire import keys


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
    assert finding.detail.startswith(f"{len(jars.list_locked())} of {len(jars.list_locked())} (")
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
def test_the_embedded_services_pass(kafka: KafkaServer, tmp_path: Path) -> None:
    with RedisServer(tmp_path) as server:
        findings = [
            *service_checks.check_kafka(kafka.bootstrap),
            *service_checks.check_redis(server.url),
        ]
    assert names(findings, ok=False) == []
    assert names([*service_checks.check_kafka(kafka.port)], ok=False) == ["Kafka port"]


def test_a_key_of_another_program_is_named_with_the_command_that_repairs_it(tmp_path: Path) -> None:
    record = {"t/n/0x00000000_0xffffffff": "{"}
    with RedisServer(tmp_path) as server, redis.Redis.from_url(server.url) as client:
        client.hset(keys.open_key("east"), "replid", "h")
        client.rpush(keys.hints_key("east"), "junk")
        client.hset(keys.ownership_key("west"), mapping=record)
        odd = [f for f in service_checks.check_redis(server.url) if f.name == "Redis keys"]
        assert names(odd, ok=False) == ["Redis keys"] * 2
        assert "trimtab:{west}:ownership is unreadable in its field" in odd[0].detail
        assert "trimtab:{east}:hints is a list, not a string" in odd[1].detail
        for finding in odd:
            words = shlex.split(finding.next_command)
            client.eval(*words[words.index("EVAL") + 1 :])
        assert client.keys("*") == [keys.ownership_key("west").encode()]


def test_a_forgetful_redis_is_told_how_to_remember(tmp_path: Path) -> None:
    with RedisServer(tmp_path) as server:
        with redis.Redis.from_url(server.url) as client:
            client.config_set("appendonly", "no")
            client.config_set("maxmemory-policy", "allkeys-lru")
        findings = [*service_checks.check_redis(server.url)]
    assert names(findings, ok=False) == ["Redis appendonly", "Redis maxmemory-policy"]
    assert findings[1].next_command.endswith("CONFIG SET appendonly yes")


@pytest.mark.parametrize("role", [Role.JOB, Role.READER])
def test_the_rights_of_job_and_reader_are_enough_for_the_doctor(role: Role, tmp_path: Path) -> None:
    line = acl_line(role, ["east"], sha256(b"x").hexdigest()).removeprefix("user ")
    with RedisServer(tmp_path) as server:
        with redis.Redis.from_url(server.url) as client:
            client.execute_command("ACL", "SETUSER", *re.findall(r"\([^)]*\)|\S+", line))
        url = f"redis://{role}-east:x@127.0.0.1:{server.port}/0"
        findings = [*service_checks.check_redis(url)]
        with redis.Redis.from_url(server.url) as client:
            client.config_set("appendonly", "no")
        forgetful = [*service_checks.check_redis(url)]
    assert names(findings, ok=False) == []
    # CONFIG GET would show the server's passwords too: this one the doctor leaves to others.
    [fsync] = [each for each in findings if each.name == "Redis appendfsync"]
    assert "+config|get" in fsync.detail
    assert fsync.detail.endswith("--askpass CONFIG GET appendfsync")
    assert names(forgetful, ok=False) == ["Redis appendonly"]


def test_a_user_who_may_not_read_the_settings_is_told_the_right_and_who_has_it(
    tmp_path: Path,
) -> None:
    rights = ["+info|server", "+info|replication", "+ping"]
    with RedisServer(tmp_path) as server:
        with redis.Redis.from_url(server.url) as client:
            client.acl_setuser("job", enabled=True, passwords=["+x"], commands=rights)
        url = f"redis://job:x@127.0.0.1:{server.port}/0"
        findings = [each for each in service_checks.check_redis(url) if not each.ok]
    assert [each.detail for each in findings] == [
        "this user lacks the right +info|persistence, needs yes",
        "this user lacks the right +info|memory, needs noeviction",
    ]
    assert findings[0].next_command.endswith("--askpass CONFIG GET appendonly")


def test_a_service_without_the_config_command_can_be_checked(tmp_path: Path) -> None:
    with RedisServer(tmp_path, settings=['rename-command CONFIG ""']) as server:
        findings = [*service_checks.check_redis(server.url)]
    assert names(findings, ok=False) == []


def test_a_refused_password_is_not_reported_as_an_absent_server(tmp_path: Path) -> None:
    with RedisServer(tmp_path) as server:
        url = f"redis://:wrong@127.0.0.1:{server.port}/0"
        (finding,) = service_checks.check_redis(url)
    assert "does not answer" not in finding.detail
    assert "refuses us" in finding.detail
    assert finding.next_command.endswith("--askpass ping")


def test_a_redis_cluster_is_not_what_is_needed(tmp_path: Path) -> None:
    with RedisServer(tmp_path, settings=clustered()) as server:
        (finding,) = service_checks.check_redis(server.url)
    assert not finding.ok
    assert "Redis Cluster is not supported; use a single master" in finding.detail
    assert finding.next_command


def test_an_address_that_cannot_be_one_is_a_finding() -> None:
    (finding,) = service_checks.check_redis("redis+sentinel://:hunter2@h:1")
    assert not finding.ok
    assert "redis+sentinel://host:port" in finding.detail
    assert "hunter2" not in f"{finding}"


def test_replicas_are_counted_and_the_rule_is_told(tmp_path: Path) -> None:
    def of(url: str, setting: int | None = None) -> dict[str, Finding]:
        return {each.name: each for each in service_checks.check_redis(url, setting)}

    with RedisServer(tmp_path / "master") as master:
        alone = of(master.url)["Redis replicas"]
        assert (alone.ok, alone.detail) == (True, "no replicas, so none need acknowledge")
        asked = of(master.url, 1)["Redis replicas"]
        assert not asked.ok
        assert "1 more must follow" in asked.detail
        copy = RedisServer(tmp_path / "copy", like=master, replica_of=master.port)
        with copy:
            eventually(lambda: "1 of 1" in of(master.url)["Redis replicas"].detail, "a copy")
            eventually(lambda: of(master.url)["Redis replicas"].ok, "a copy in step")
            assert "the loss of one stops renewals" in of(master.url)["Redis replicas"].detail
            role = of(copy.url)["Redis role"]
            assert not role.ok
            assert f"is a replica of 127.0.0.1:{master.port}" in role.detail


def test_sentinels_are_asked_one_by_one(tmp_path: Path) -> None:
    absent = free_port()
    with (
        RedisServer(tmp_path / "redis") as server,
        SentinelServer(tmp_path / "sentinel", server, quorum=1) as sentinel,
    ):
        hosts = f"127.0.0.1:{sentinel.port}"
        url = f"redis+sentinel://:{server.password}@{hosts}/{NAME}/0"
        findings = [*service_checks.check_redis(url)]
        assert names(findings, ok=False) == []
        assert findings[0].detail == f"1 of 1 name 127.0.0.1:{server.port}"
        findings = [*service_checks.check_redis(url.replace(hosts, f"127.0.0.1:{absent},{hosts}"))]
        assert names(findings, ok=False) == ["Redis Sentinels"]
        assert f"127.0.0.1:{absent}" in findings[0].detail
        assert not any(server.password in f"{finding}" for finding in findings)
