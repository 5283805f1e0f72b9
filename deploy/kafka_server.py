"""The embedded Kafka: one KRaft node from the locked jars, on the loopback interface."""

from __future__ import annotations

import base64
import os
import shutil
import subprocess
import uuid
from importlib.resources import files
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from deploy import jars
from deploy.ports import LOOPBACK, answers, free_port
from deploy.process import Process, ServerError

_START_SECONDS = 60.0


class KafkaServer:
    """Starts, stops, and starts again on the same data and the same port."""

    def __init__(self, folder: Path, *, port: int | None = None, heap: str = "512m") -> None:
        self.folder = folder.resolve()
        self.port = port or free_port()
        self._controller_port = free_port()
        log4j = f"-Dlog4j2.configurationFile={self.folder / 'log4j2.properties'}"
        self._java = [java(), "-cp", os.pathsep.join(map(str, jars.kafka_jars())), log4j]
        self._process = Process(
            "Kafka",
            [*self._java, f"-Xmx{heap}", "kafka.Kafka", str(self._properties)],
            folder=self.folder,
            log=self.folder / "kafka.log",
        )

    @property
    def bootstrap(self) -> str:
        return f"{LOOPBACK}:{self.port}"

    @property
    def log(self) -> Path:
        return self._process.log

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process.running

    def start(self) -> None:
        """Returns once the broker answers metadata requests."""
        if not shutil.which(self._java[0]):
            raise ServerError(
                f"{self._java[0]} is not there: Kafka needs a JDK. Type: trimtab doctor"
            )
        self.folder.mkdir(parents=True, exist_ok=True)
        self._write_configuration()
        if not (self._data / "meta.properties").exists():
            self._format()
        self._process.start(self._answers, _START_SECONDS)

    def stop(self) -> None:
        self._process.stop()

    def kill(self) -> None:
        """As a crash would: no flush, no goodbye."""
        self._process.kill()

    def __enter__(self) -> KafkaServer:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

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
        broker = f"PLAINTEXT://{self.bootstrap}"
        controller = f"{LOOPBACK}:{self._controller_port}"
        own = (
            f"\nlisteners={broker},CONTROLLER://{controller}"
            f"\nadvertised.listeners={broker}"
            f"\ncontroller.quorum.voters=1@{controller}"
            f"\nlog.dirs={self._data}\n"
        )
        self._properties.write_text(fixed + own, "utf-8")

    def _format(self) -> None:
        # Kafka wants a UUID in URL-safe base64; a leading "-" would be read as an option.
        cluster = "T" + base64.urlsafe_b64encode(uuid.uuid4().bytes).decode()[1:22]
        arguments = ["format", "--cluster-id", cluster, "--config", str(self._properties)]
        quick = ["-Xmx128m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
        done = subprocess.run(
            [*self._java, *quick, "kafka.tools.StorageTool", *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise ServerError(f"Kafka's storage cannot be formatted: {done.stdout}{done.stderr}")

    def _answers(self) -> bool:
        # librdkafka complains on stderr about a port that nobody listens on yet.
        if not answers(LOOPBACK, self.port):
            return False
        try:
            admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
            return bool(admin.list_topics(timeout=2).brokers)
        except KafkaException:
            return False


def java() -> str:
    """The same choice as Spark's own launcher."""
    home = os.environ.get("JAVA_HOME")
    return str(Path(home) / "bin" / "java") if home else "java"
