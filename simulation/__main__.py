"""``python -m simulation``: runs a fleet as its own process, until SIGTERM or Ctrl-C.

Snapshots go to stdout as JSON lines, everything else to stderr.
"""

from __future__ import annotations

import signal
import threading
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from agent.logs import log_to_stderr
from agent.metrics import AgentMetrics
from simulation.fleet import Fleet, FleetSettings
from simulation.load_model import load_model
from simulation.profile import InvalidProfile, Profile, read_profile


def simulate(  # noqa: PLR0913 - the options of a command line
    kafka: Annotated[str, typer.Option(help="Kafka's bootstrap servers.")] = "127.0.0.1:9092",
    redis: Annotated[
        str, typer.Option(help="Redis's URL.", envvar="TRIMTAB_REDIS_URL")
    ] = "redis://127.0.0.1:6379/0",
    cluster: Annotated[str, typer.Option(help="Name the fleet reports under.")] = "demo",
    report_interval: Annotated[float, typer.Option(min=0.05, help="Seconds.")] = 5.0,
    snapshot_interval: Annotated[float, typer.Option(min=0.05, help="Seconds.")] = 1.0,
    profile: Annotated[Path | None, typer.Option(help="TOML file with a [fleet] table.")] = None,
    brokers: Annotated[int | None, typer.Option(help="Instead of the profile's.")] = None,
    bundles: Annotated[int | None, typer.Option(help="Instead of the profile's.")] = None,
    namespaces: Annotated[int | None, typer.Option(help="Instead of the profile's.")] = None,
    seed: Annotated[int | None, typer.Option(help="Instead of the profile's.")] = None,
    metrics_port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="Serve the agents' metrics on loopback.")
    ] = None,
) -> None:
    """Run simulated brokers, each with its agent, and print their state."""
    log_to_stderr()
    given = {"brokers": brokers, "bundles": bundles, "namespaces": namespaces, "seed": seed}
    try:
        chosen = read_profile(profile) if profile else Profile()
        chosen = replace(chosen, **{name: n for name, n in given.items() if n is not None})
    except (InvalidProfile, OSError) as error:
        cure = f"edit {profile}" if profile else "python -m simulation --help"
        typer.echo(f"{error}\nNext: {cure}", err=True)
        raise typer.Exit(2) from error
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    metrics = AgentMetrics()
    if metrics_port is not None:
        metrics.shown.serve("127.0.0.1", metrics_port)
    settings = FleetSettings(kafka, redis, cluster, report_interval)
    fleet = Fleet(load_model(chosen), settings, metrics)
    fleet.start()
    while not stop.wait(snapshot_interval):
        _print(fleet)
    fleet.stop()
    _print(fleet)


def _print(fleet: Fleet) -> None:
    print(msgspec.json.encode(fleet.snapshot()).decode(), flush=True)


if __name__ == "__main__":
    typer.run(simulate)
