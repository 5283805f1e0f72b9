"""Load reports of real Pulsar brokers into trimtab.load-reports, byte for byte as they were served.

    python -m tests.e2e.poll_reports --kafka 127.0.0.1:9092 --cluster prod http://broker-1:8080 …

The Kafka key and the headers come from the report itself. A broker that gives none is named on
stderr and asked again the next time.
"""

from __future__ import annotations

import sys
import time
from http.client import HTTPException
from typing import Annotated
from urllib.parse import urlsplit
from urllib.request import urlopen

import msgspec
import typer

from agent.reports.outbox import Message, Outbox
from agent.reports.producer import kafka_producer
from trimtab.wire.keys import SEQUENCE_HEADER, SESSION_HEADER

LOAD_REPORT = "/admin/v2/broker-stats/load-report"
_TIMEOUT_SECONDS = 5.0


class Told(msgspec.Struct, rename="camel"):
    """What the key and the headers need of a report."""

    start_timestamp: int
    web_service_url: str | None = None
    web_service_url_tls: str | None = None

    @property
    def broker(self) -> str:
        """Pulsar's brokerId, which a report does not carry."""
        return urlsplit(self.web_service_url or self.web_service_url_tls or "").netloc


class NoReport(RuntimeError):
    """A broker gave none this time; the message says which and why."""


def fetch(url: str, cluster: str, sequence: int) -> Message:
    """The report that the broker at ``url`` serves now; raises NoReport."""
    try:
        with urlopen(url.rstrip("/") + LOAD_REPORT, timeout=_TIMEOUT_SECONDS) as response:
            value: bytes = response.read()
        told = msgspec.json.decode(value, type=Told)
    except (OSError, HTTPException, msgspec.DecodeError) as error:
        raise NoReport(f"{url}: {error}") from error
    if not told.broker:
        raise NoReport(f"{url}: the report names no web service")
    headers = [
        (SESSION_HEADER, str(told.start_timestamp).encode()),
        (SEQUENCE_HEADER, str(sequence).encode()),
    ]
    return Message(f"{cluster}/{told.broker}".encode(), value, headers)


def poll(
    brokers: Annotated[list[str], typer.Argument(help="Web service URLs.")],
    kafka: Annotated[str, typer.Option(help="Bootstrap servers.")],
    cluster: Annotated[str, typer.Option(help="The cluster's name in trimtab.")],
    every: Annotated[float, typer.Option(min=0.1, help="Seconds between polls.")] = 5.0,
) -> None:
    """Poll until stopped."""
    outbox = Outbox(lambda: kafka_producer(kafka))
    outbox.start()
    while True:
        due = time.monotonic() + every
        for url in brokers:
            try:
                # Milliseconds grow over a restart of this script; the broker's session stays.
                outbox.put(fetch(url, cluster, time.time_ns() // 1_000_000))
            except NoReport as error:
                print(error, file=sys.stderr, flush=True)
        time.sleep(max(0.0, due - time.monotonic()))


if __name__ == "__main__":
    typer.run(poll)
