"""``trimtab-agent``: an agent with a broker that serves nothing, to watch commands arrive."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final

import typer

from agent.logs import log_to_stderr
from agent.metrics import AgentMetrics
from agent.ownership.seen import Unusable
from agent.reports.host import HostSampler
from agent.running import running, wait_for_the_end
from agent.settings import AgentSettings
from sinks.errors import Misconfigured
from sinks.exposition import PortTaken
from trimtab.model import InvalidName, parse_subject
from trimtab.policies import host_of
from trimtab.wire.reports.load_report import BundleStats, LocalBrokerData

_FAILED: Final = 1
_USAGE: Final = 2
"""The exit code of all programs for wrong usage (docs/cli.md)."""


class IdleBroker:
    """Holds the bundles it gets and prints its commands; no bundle has traffic."""

    def __init__(self, broker: str, started_ms: int, host: HostSampler) -> None:
        """``broker`` is its id, host:port: where it would listen."""
        self._broker, self.started_ms = broker, started_ms
        self._host = host
        self._loaded: set[str] = set()

    def bundles(self) -> set[str]:
        return self._loaded

    def load_report(self) -> LocalBrokerData:
        return LocalBrokerData(
            **self._host.sample()._asdict(),
            bundles=sorted(self._loaded),
            last_stats={bundle: BundleStats() for bundle in sorted(self._loaded)},
            num_bundles=len(self._loaded),
            last_update=time.time_ns() // 1_000_000,
            start_timestamp=self.started_ms,
            web_service_url=f"http://{self._broker}",
            pulsar_service_url=f"pulsar://{host_of(self._broker)}:6650",
        )

    def prepare(self, bundle: str) -> None:
        typer.echo(f"prepare {bundle}")

    def load(self, bundle: str) -> None:
        self._loaded.add(bundle)
        typer.echo(f"load    {bundle}")

    def unload(self, bundle: str) -> None:
        self._loaded.discard(bundle)
        typer.echo(f"unload  {bundle}")

    def topics(self, bundle: str) -> dict[int, tuple[float, ...]]:  # noqa: ARG002 - it has none
        return {}

    def split(self, bundle: str, children: Sequence[str]) -> None:
        self._loaded.discard(bundle)
        self._loaded.update(children)
        typer.echo(f"split   {bundle}")

    def merge(self, parts: Sequence[str], whole: str) -> None:
        self._loaded.difference_update(parts)
        self._loaded.add(whole)
        typer.echo(f"merge   {whole}")


def run(  # noqa: PLR0913 - the options of the command
    cluster: Annotated[str, typer.Option(help="Cluster the broker belongs to.")],
    broker: Annotated[str, typer.Option(help="The broker's id, host:port.")],
    kafka: Annotated[str, typer.Option(help="Kafka's bootstrap servers.")] = "127.0.0.1:9092",
    redis: Annotated[
        str, typer.Option(help="Redis's URL.", envvar="TRIMTAB_REDIS_URL")
    ] = "redis://127.0.0.1:6379/0",
    report_interval: Annotated[float, typer.Option(min=0.05, help="Seconds.")] = 5.0,
    nic_speed_gbits: Annotated[
        float | None, typer.Option(min=0.001, help="Gbit/s of each interface, if it cannot tell.")
    ] = None,
    state: Annotated[
        Path | None, typer.Option(help="File that keeps what was seen; its folder must be there.")
    ] = None,
    metrics_port: Annotated[
        int | None,
        typer.Option(min=0, max=65535, help="Serve Prometheus metrics; 0: any port."),
    ] = None,
    metrics_host: Annotated[
        str, typer.Option(help="The address for metrics; they need no password.")
    ] = "127.0.0.1",
    drain_seconds: Annotated[
        float, typer.Option(min=0.0, help="At most, to give the bundles away at the end.")
    ] = 0.0,
) -> None:
    """Run an agent with a demonstration broker until SIGTERM or Ctrl-C."""
    log_to_stderr()
    idle = IdleBroker(broker, time.time_ns() // 1_000_000, HostSampler(nic_speed_gbits))
    settings = AgentSettings(cluster, broker, idle.started_ms, report_interval, state=state)
    try:
        parse_subject(f"{cluster}/{broker}")
        metrics = AgentMetrics()
        if metrics_port is not None:
            server = metrics.shown.serve(metrics_host, metrics_port)
            typer.echo(f"metrics: http://{metrics_host}:{server.server_port}/metrics")
        with running(idle, settings, kafka, redis, drain_seconds, metrics=metrics) as agent:
            wait_for_the_end(agent)
    except (InvalidName, Misconfigured, Unusable) as error:
        typer.echo(f"{error}\nNext: trimtab-agent --help", err=True)
        raise typer.Exit(_USAGE) from error
    except PortTaken as error:
        typer.echo(f"{error}\nNext: give another --metrics-port", err=True)
        raise typer.Exit(_FAILED) from error


def main() -> None:
    """Entry point of the console script."""
    typer.run(run)
