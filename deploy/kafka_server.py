"""The embedded Kafka: one KRaft node from the locked jars, on the loopback interface."""

from __future__ import annotations

import base64
import os
import shutil
import subprocess
import uuid
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar, Final

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from deploy import jars
from deploy.ports import LOOPBACK, answers, free_port
from deploy.process import Process, Server, ServerError
from deploy.secret_file import write_secret

_START_SECONDS = 60.0


QUICK: Final = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""Options of a JVM that runs for minutes: the second compiler costs more than it saves."""


class KafkaServer(Server):
    """Starts, stops, and restarts on the same data and the same port."""

    java_options: ClassVar[Sequence[str]] = QUICK

    def __init__(
        self,
        folder: Path,
        *,
        port: int | None = None,
        heap: str = "512m",
        secured: Mapping[str, Mapping[str, str]] = MappingProxyType({}),
    ) -> None:
        """``secured``: security protocol to the properties of a listener for it.

        Each listens next to the plain one, which stays for administration.
        """
        self.folder = folder.resolve()
        self.port = port or free_port()
        self.secured = {protocol: f"{LOOPBACK}:{free_port()}" for protocol in secured}
        """Security protocol to the address of its listener."""
        self._secured = secured
        self._controller_port = free_port()
        log4j = f"-Dlog4j2.configurationFile={self.folder / 'log4j2.properties'}"
        classes = os.pathsep.join(map(str, jars.kafka_jars()))
        self._java = [java(), *self.java_options, "-cp", classes, log4j]
        self._process = Process(
            "Kafka",
            [*self._java, f"-Xmx{heap}", "kafka.Kafka", str(self._properties)],
            folder=self.folder,
            log=self.folder / "kafka.log",
        )

    @property
    def bootstrap(self) -> str:
        return f"{LOOPBACK}:{self.port}"

    def start(self) -> None:
        """Start; returns once the broker answers metadata requests."""
        if not shutil.which(self._java[0]):
            raise ServerError(
                f"{self._java[0]} is not there: Kafka needs a JDK. Type: trimtab doctor"
            )
        self.folder.mkdir(parents=True, exist_ok=True)
        self._write_configuration()
        if not (self._data / "meta.properties").exists():
            self._format()
        self._process.start(self._answers, _START_SECONDS)

    @property
    def _data(self) -> Path:
        return self.folder / "data"

    @property
    def _properties(self) -> Path:
        return self.folder / "server.properties"

    def _write_configuration(self) -> None:
        resources = files("deploy")
        log4j = resources.joinpath("log4j2.properties").read_text("utf-8")
        (self.folder / "log4j2.properties").write_text(log4j, "utf-8")
        fixed = resources.joinpath("kafka_server.properties").read_text("utf-8")
        addresses = {"PLAINTEXT": self.bootstrap, **self.secured}
        brokers = ",".join(f"{name}://{address}" for name, address in addresses.items())
        controller = f"{LOOPBACK}:{self._controller_port}"
        own = {
            "listeners": f"{brokers},CONTROLLER://{controller}",
            "advertised.listeners": brokers,
            "inter.broker.listener.name": "PLAINTEXT",
            "listener.security.protocol.map": ",".join(
                ["CONTROLLER:PLAINTEXT", *(f"{name}:{name}" for name in addresses)]
            ),
            "controller.quorum.voters": f"1@{controller}",
            "log.dirs": str(self._data),
        }
        for protocol, properties in self._secured.items():
            prefix = f"listener.name.{protocol.lower()}."
            own |= {prefix + name: value for name, value in properties.items()}
        lines = "".join(f"\n{name}={value}" for name, value in own.items())
        write_secret(self._properties, f"{fixed}{lines}\n")

    def _format(self) -> None:
        # Kafka wants a UUID in URL-safe base64; a leading "-" would be read as an option.
        cluster = "T" + base64.urlsafe_b64encode(uuid.uuid4().bytes).decode()[1:22]
        arguments = ["format", "--cluster-id", cluster, "--config", str(self._properties)]
        done = subprocess.run(
            [*self._java, "-Xmx128m", "kafka.tools.StorageTool", *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise ServerError(f"Kafka's storage cannot be formatted: {done.stdout}{done.stderr}")

    def _answers(self) -> bool:
        # librdkafka complains on stderr about a port without a listener.
        if not answers(LOOPBACK, self.port):
            return False
        try:
            admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
            return bool(admin.list_topics(timeout=2).brokers)
        except KafkaException:
            return False


def java() -> str:
    """The Java that Spark's own launcher would choose."""
    home = os.environ.get("JAVA_HOME")
    return str(Path(home) / "bin" / "java") if home else "java"
