"""SASL and TLS to a real Kafka, by every client; and that no password is ever shown."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._scram import (
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from pydantic import SecretStr, ValidationError
from structlog.testing import capture_logs

from agent.reports.outbox import Message, Outbox
from agent.reports.producer import Producer, kafka_producer
from deploy import jars
from deploy.kafka_server import KafkaServer
from deploy.ports import free_port
from deploy.redis_server import RedisServer
from sinks.errors import KafkaUnavailable, Misconfigured
from sinks.kafka.clients import check_access
from sinks.kafka.generation import claim
from sinks.kafka.publisher import Outgoing, Publisher
from sinks.kafka.reporting_clusters import reporting_clusters
from sinks.kafka.security import PLAINTEXT, KafkaSecurity, security_of_environment
from sinks.kafka.topics import ensure_topics
from streaming.config import InvalidConfig, KafkaConfig, load_config
from tests.sinks.reading import values_of
from tests.support.certificates import Authority
from tests.support.examples import later
from tests.support.waiting import eventually
from trimtab.wire import keys

USER, PASSWORD = "alice", 'wonderland"\\'
CANARY = "canary-in-the-mine"

_LOGIN: Final = "org.apache.kafka.common.security"


class Secured(NamedTuple):
    """A Kafka that has every topic, and what vouches for it."""

    server: KafkaServer
    ours: Authority
    theirs: Authority
    certificate: Path
    """A client's."""

    def security(self, protocol: str, **more: object) -> KafkaSecurity:
        given: dict[str, object] = {"protocol": protocol}
        if protocol.startswith("SASL"):
            given |= {"username": USER, "password": PASSWORD}
        if protocol.endswith("SSL"):
            given["ca"] = self.ours.ca
        if protocol == "SSL":
            given["certificate"] = self.certificate
        return KafkaSecurity.model_validate(given | more)


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    jars.fetch()
    folder = tmp_path_factory.mktemp("secured")
    ours, theirs = Authority(folder, "ours"), Authority(folder, "theirs")
    tls = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(ours.issue("server")),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(ours.ca),
    }
    quoted = PASSWORD.replace("\\", "\\\\").replace('"', '\\"')
    # A properties file takes a backslash for itself.
    user = f'user_{USER}="{quoted}";'.replace("\\", "\\\\")
    sasl = {
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
        "plain.sasl.jaas.config": f"{_LOGIN}.plain.PlainLoginModule required {user}",
        "scram-sha-512.sasl.jaas.config": f"{_LOGIN}.scram.ScramLoginModule required;",
    }
    listeners: Mapping[str, Mapping[str, str]] = {
        "SASL_SSL": {**tls, **sasl},
        "SASL_PLAINTEXT": sasl,
        "SSL": {**tls, "ssl.client.auth": "required"},
    }
    with KafkaServer(folder / "kafka", secured=listeners) as server:
        ensure_topics(server.bootstrap)
        scram = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
        wanted = UserScramCredentialUpsertion(USER, scram, PASSWORD.encode())
        admin = AdminClient({"bootstrap.servers": server.bootstrap})
        for made in admin.alter_user_scram_credentials([wanted]).values():
            made.result()
        kafka = Secured(server, ours, theirs, ours.issue("client"))
        # The broker learns of a user after the controller has answered.
        eventually(lambda: _is_let_in(kafka), "the user is known")
        yield kafka


def _is_let_in(kafka: Secured) -> bool:
    security = kafka.security("SASL_PLAINTEXT", mechanism="SCRAM-SHA-512")
    address = kafka.server.secured["SASL_PLAINTEXT"]
    try:
        check_access(address, security.librdkafka())
    except (KafkaUnavailable, Misconfigured):
        return False
    return True


@pytest.mark.e2e
@pytest.mark.parametrize(
    ("protocol", "mechanism"),
    [
        ("SASL_SSL", "SCRAM-SHA-512"),
        ("SASL_PLAINTEXT", "PLAIN"),
        ("SSL", "PLAIN"),
        *later(("SASL_SSL", "PLAIN"), ("SASL_PLAINTEXT", "SCRAM-SHA-512")),
    ],
)
def test_every_client_is_let_in_and_logs_no_password(
    secured: Secured, protocol: str, mechanism: str, caplog: pytest.LogCaptureFixture
) -> None:
    """kafka-python, at DEBUG, logs a SASL PLAIN password with all else that it sends."""
    caplog.set_level(logging.DEBUG)
    security = secured.security(protocol, mechanism=mechanism)
    address = secured.server.secured[protocol]

    assert ensure_topics(address, security.librdkafka()) == ()
    name = f"{protocol}-{mechanism}"
    Publisher(address, security.librdkafka()).publish([Outgoing(keys.COMMANDS, name, b"1")])
    held = claim(address, "job", security.librdkafka())
    held.close()
    assert reporting_clusters(address, security.librdkafka()) == set()
    agents = kafka_producer(address, security)
    agents.send(keys.COMMANDS, b"2", name.encode(), [])
    agents.close(10.0)

    assert values_of(secured.server.bootstrap, keys.COMMANDS, name) == [b"1", b"2"]
    assert "kafka" in caplog.text
    assert "wonderland" not in caplog.text


@pytest.mark.e2e
@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-512", "PLAIN"])
def test_a_wrong_password_is_told_at_once_by_every_client(
    secured: Secured, mechanism: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    security = secured.security("SASL_SSL", mechanism=mechanism, password=CANARY)
    address, client = secured.server.secured["SASL_SSL"], security.librdkafka()
    publisher = Publisher(address, {**client, "delivery.timeout.ms": "2000"})
    for attempt in (
        lambda: ensure_topics(address, client),
        lambda: publisher.publish([Outgoing(keys.COMMANDS, "key", b"value")]),
        lambda: kafka_producer(address, security),
    ):
        with pytest.raises(Misconfigured, match=r"SASL authentication error.*kafka\.security") as e:
            attempt()
        assert CANARY not in f"{e.value!r} {e.value.__cause__!r} {e.value.__context__!r}"
    assert "SASL authentication error" in caplog.text
    assert CANARY not in caplog.text


@pytest.mark.e2e
def test_a_server_of_another_authority_is_refused(secured: Secured) -> None:
    security = secured.security("SASL_SSL", ca=secured.theirs.ca)
    with pytest.raises(Misconfigured, match=r"certificate verify failed.*ca"):
        check_access(secured.server.secured["SASL_SSL"], security.librdkafka())


@pytest.mark.e2e
@pytest.mark.parametrize("stranger", [False, True], ids=["no certificate", "another authority's"])
def test_a_client_without_the_required_certificate_is_refused(
    secured: Secured, stranger: bool
) -> None:
    shown = secured.theirs.issue("stranger") if stranger else None
    security = secured.security("SSL", certificate=shown)
    with pytest.raises(Misconfigured, match=r"kafka\.security"):
        check_access(secured.server.secured["SSL"], security.librdkafka())


def test_an_absent_server_is_waited_for_whatever_the_password() -> None:
    security = KafkaSecurity(protocol="SASL_PLAINTEXT", username=USER, password=SecretStr(PASSWORD))
    with pytest.raises(KafkaUnavailable):
        kafka_producer(f"127.0.0.1:{free_port()}", security)


def test_a_refused_agent_says_so_once_and_does_not_try_again_at_once() -> None:
    tried = threading.Semaphore(0)
    attempts: list[int] = []

    def refused() -> Producer:
        attempts.append(1)
        tried.release()
        raise Misconfigured("Kafka at h:1: wrong password")

    outbox = Outbox(refused)
    with capture_logs() as logs:
        outbox.start()
        for number in range(20):
            outbox.put(Message(b"%d" % number, b"", []))
        assert tried.acquire(timeout=10)
        outbox.stop()

    assert len(attempts) == 1
    assert [(line["event"], line["cause"]) for line in logs] == [
        ("reports are not sent", "Kafka at h:1: wrong password")
    ]


def test_each_client_is_told_in_its_own_words(secured_files: tuple[Path, Path]) -> None:
    ca, certificate = secured_files
    security = KafkaSecurity(
        protocol="SASL_SSL",
        username=USER,
        password=SecretStr(PASSWORD),
        ca=ca,
        certificate=certificate,
    )
    assert security.librdkafka() == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "alice",
        "sasl.password": 'wonderland"\\',
        "ssl.ca.location": str(ca),
        "ssl.certificate.location": str(certificate),
        "ssl.key.location": str(certificate),
    }
    assert security.kafka_python() == {
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_plain_username": "alice",
        "sasl_plain_password": 'wonderland"\\',
        "ssl_cafile": str(ca),
        "ssl_certfile": str(certificate),
        "ssl_keyfile": str(certificate),
    }
    assert security.connector() == {
        "kafka.security.protocol": "SASL_SSL",
        "kafka.sasl.mechanism": "SCRAM-SHA-512",
        "kafka.sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule "
        'required username="alice" password="wonderland\\"\\\\";',
        "kafka.ssl.truststore.location": str(ca),
        "kafka.ssl.truststore.type": "PEM",
        "kafka.ssl.keystore.location": str(certificate),
        "kafka.ssl.keystore.type": "PEM",
    }


@pytest.fixture
def secured_files(tmp_path: Path) -> tuple[Path, Path]:
    authority = Authority(tmp_path, "ours")
    return authority.ca, authority.issue("client")


def test_without_settings_only_the_protocol_is_said() -> None:
    assert PLAINTEXT.librdkafka() == {"security.protocol": "PLAINTEXT"}
    assert PLAINTEXT.kafka_python() == {"security_protocol": "PLAINTEXT"}
    assert PLAINTEXT.connector() == {"kafka.security.protocol": "PLAINTEXT"}


def test_the_job_reads_it_once_for_all_its_clients(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "trimtab.toml"
    path.write_text(
        """
        [kafka.security]
        protocol = "SASL_PLAINTEXT"
        mechanism = "PLAIN"
        username = "alice"
        [kafka.client]
        "client.id" = "job"
        [kafka.options]
        "kafka.client.id" = "spark"
        """
    )
    monkeypatch.setenv("TRIMTAB_KAFKA__SECURITY__PASSWORD", CANARY)
    config = load_config(path)

    assert config.kafka.client["sasl.password"] == CANARY
    assert config.kafka.client["client.id"] == "job"
    assert CANARY in config.kafka.options["kafka.sasl.jaas.config"]
    assert config.kafka.options["kafka.client.id"] == "spark"
    for shown in (repr(config), str(config), repr(config.kafka), config.model_dump_json()):
        assert CANARY not in shown


def test_what_an_operator_gives_a_client_himself_goes_over_it() -> None:
    given = {"sasl.password": CANARY, "security.protocol": "SASL_SSL"}
    config = KafkaConfig(client=given, options={"kafka.security.protocol": "SSL"})
    assert config.client == given
    assert config.options == {"kafka.security.protocol": "SSL"}
    assert CANARY not in repr(config)


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        pytest.param({"username": "a", "password": CANARY}, "SASL", id="login without SASL"),
        pytest.param({"protocol": "SASL_SSL", "username": "a"}, "both", id="no password"),
        pytest.param({"protocol": "SASL_SSL", "password": CANARY}, "both", id="no user"),
        pytest.param({"ca": "/ca.pem"}, "SSL", id="authority without TLS"),
        pytest.param({"protocol": "SSL", "ca": "/no.pem"}, "/no.pem", id="no such file"),
        pytest.param({"protocol": "SSL", "certificate": "/no.pem"}, "/no.pem", id="no such key"),
        pytest.param({"protocol": CANARY}, "protocol", id="no such protocol"),
        pytest.param({"passwort": CANARY}, "passwort", id="misspelt"),
    ],
)
def test_what_makes_no_sense_is_told_without_the_password(
    given: dict[str, str], problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ValidationError) as caught:
        KafkaSecurity.model_validate(given)
    assert problem in str(caught.value)
    assert CANARY not in str(caught.value)

    for name, value in given.items():
        monkeypatch.setenv(f"TRIMTAB_KAFKA__SECURITY__{name.upper()}", value)
    with pytest.raises(InvalidConfig, match=problem) as told:
        load_config(None)
    assert CANARY not in str(told.value)
    with pytest.raises(Misconfigured) as refused:
        security_of_environment()
    assert CANARY not in str(refused.value)


@pytest.mark.e2e
def test_an_agents_process_shows_no_password(
    secured: Secured, redis_server: RedisServer, tmp_path: Path
) -> None:
    """Its Redis password is right and its Kafka password wrong: neither may be seen anywhere."""
    password = redis_server.url.split(":")[2].split("@")[0]
    environment = {
        **os.environ,
        "TRIMTAB_REDIS_URL": redis_server.url,
        "TRIMTAB_KAFKA__SECURITY__PROTOCOL": "SASL_SSL",
        "TRIMTAB_KAFKA__SECURITY__USERNAME": USER,
        "TRIMTAB_KAFKA__SECURITY__PASSWORD": CANARY,
        "TRIMTAB_KAFKA__SECURITY__CA": str(secured.ours.ca),
    }
    command = [sys.executable, "-c", "from agent.main import main; main()"]
    command += ["--cluster", "c", "--broker", "a:8080"]
    command += ["--kafka", secured.server.secured["SASL_SSL"], "--report-interval", "0.1"]
    log = tmp_path / "log"
    with (
        log.open("w") as stderr,
        subprocess.Popen(
            command, env=environment, stdout=stderr, stderr=stderr, cwd=Path.cwd()
        ) as process,
    ):
        try:
            eventually(
                lambda: "reports are not sent" in log.read_text() or process.poll() is not None,
                "a word of the password that is refused",
            )
            assert process.poll() is None, log.read_text()
            arguments = Path(f"/proc/{process.pid}/cmdline")
            shown = arguments.read_text() if arguments.exists() else ""
        finally:
            process.terminate()
    said = log.read_text() + shown
    assert "SASL authentication error" in said
    assert CANARY not in said
    assert password not in said
