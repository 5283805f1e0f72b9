"""Two clusters of broker processes, and a process of clients, each of which can be killed."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterable, Sequence
from http.client import HTTPException
from pathlib import Path
from urllib.request import urlopen

import msgspec

from deploy.ports import LOOPBACK, answers, free_port
from deploy.process import Process
from simulation.traffic.checker import Verdict, judge, read
from simulation.traffic.crowd import SUBSCRIPTION, Status
from trimtab.migration.migration import Target
from trimtab.wire.reports.load_report import LocalBrokerData

START_S = 60.0
"""A machine that other work keeps busy is slow to import."""


class BrokerProcess:
    """A broker, over all of its lives."""

    def __init__(self, of: Cluster, number: int, own: Sequence[str]) -> None:
        self.web_port, self.port = free_port(), free_port()
        self.name = f"{LOOPBACK}:{self.web_port}"
        self._of, self._number, self._own = of, number, own

    def start(self) -> None:
        """Returns at once; it answers some seconds later."""
        of, name = self._of, f"{self._of.name}-{self._number}"
        command = [sys.executable, "-m", "simulation.traffic", of.name, self.name, str(self.port)]
        command += [str(of.log), of.urls.serviceUrl, of.urls.brokerServiceUrl]
        command += [f"--kafka={of.kafka}", f"--lease={of.lease_s}"]
        command += [f"--state={of.folder / name}.seen", *(f"--own={each}" for each in self._own)]
        # A later life has only what its records give it.
        self._own = ()
        environment = {**os.environ, "TRIMTAB_REDIS_URL": of.redis_url}
        log = of.folder / f"{name}.log"
        self._process = Process(name, command, folder=of.folder, log=log, environment=environment)
        self._process.start(lambda: True, START_S)

    def answers(self) -> bool:
        """Whether clients can connect."""
        return answers(LOOPBACK, self.port)

    def kill(self) -> None:
        """As ``kill -9``."""
        self._process.kill()

    def stop(self) -> None:
        self._process.stop()

    @property
    def running(self) -> bool:
        return self._process.running

    def load_report(self) -> LocalBrokerData | None:
        """What its agent would send to Kafka; None while it does not answer."""
        try:
            url = f"http://{self.name}/admin/v2/broker-stats/load-report"
            with urlopen(url, timeout=2.0) as answer:
                return msgspec.json.decode(answer.read(), type=LocalBrokerData)
        except (OSError, HTTPException, msgspec.MsgspecError):
            return None


class Cluster:
    """Brokers that share a log; each begins with its share of the bundles."""

    def __init__(  # noqa: PLR0913 - what its brokers are started with
        self,
        folder: Path,
        name: str,
        brokers: int,
        bundles: Sequence[str],
        redis_url: str,
        kafka: str,
        lease_s: float,
    ) -> None:
        self.folder, self.name = folder, name
        self.log = folder / f"{name}.topics"
        self.redis_url, self.kafka, self.lease_s = redis_url, kafka, lease_s
        self.brokers = [
            BrokerProcess(self, number, bundles[number::brokers]) for number in range(brokers)
        ]

    @property
    def urls(self) -> Target:
        hosts = [each.name for each in self.brokers]
        doors = [f"{LOOPBACK}:{each.port}" for each in self.brokers]
        return Target(
            serviceUrl=f"http://{','.join(hosts)}", brokerServiceUrl=f"pulsar://{','.join(doors)}"
        )


class CrowdProcess:
    """The clients of some topics, until they are stopped."""

    def __init__(
        self,
        folder: Path,
        service_url: str,
        topics: Iterable[str],
        rate: float,
        loud: int,
    ) -> None:
        """``rate``: messages a second, over the first ``loud`` topics; 0: over all."""
        name = "crowd"
        self.diary, names = folder / f"{name}.diary", folder / f"{name}.topics"
        names.write_text("\n".join(topics))
        self._log = folder / f"{name}.log"
        arguments = [service_url, str(names), str(self.diary), f"--rate={rate}", f"--loud={loud}"]
        self._process = Process(
            name,
            [sys.executable, "-m", "simulation.traffic.crowd", *arguments],
            folder=folder,
            log=self._log,
        )

    def start(self) -> None:
        self._process.start(lambda: bool(self._statuses()), START_S)

    def be_quiet(self) -> None:
        """Send nothing more."""
        os.kill(self._process.pid, signal.SIGUSR1)

    def stop(self) -> None:
        """Returns once its diary is written."""
        self._process.stop(60.0)

    def status(self) -> Status:
        """What it said last."""
        return msgspec.json.decode(self._statuses()[-1], type=Status)

    def _statuses(self) -> list[bytes]:
        """All that it said; a line that is not yet written to its end is left out."""
        whole = self._log.read_bytes().split(b"\n")[:-1]
        return [line for line in whole if line.startswith(b"{")]

    def verdict(self) -> Verdict:
        """Of its diary, once it has stopped."""
        return judge(read([self.diary]), [SUBSCRIPTION])
