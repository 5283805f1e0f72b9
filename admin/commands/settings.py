"""`trimtab settings`: what a cluster's rounds decide by, changed and shown while the job runs."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Annotated

import msgspec
import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from admin.commands.connection import connect, send
from admin.commands.options import Cluster, Config, Json, Unchecked, Wait
from admin.ending import FAILED, USAGE, end
from control.intents import new_intent
from control.settings import Effective, explain_settings, parse_value
from simulation.replay.span import iso
from trimtab.cluster.setting_flaws import FIXED
from trimtab.wire.control import IntentKind
from trimtab.wire.rounds import RoundRecord

settings_commands = typer.Typer(
    help="Settings of a cluster while the job runs.", no_args_is_help=True
)


@settings_commands.command("show")
def show(
    cluster: Cluster,
    changed: Annotated[bool, typer.Option("--changed", help="Not those at their default.")] = False,
    json: Json = False,
    config: Config = None,
) -> None:
    """Show the settings of the cluster's last round, and where each comes from."""
    with connect(config) as plane:
        last = plane.cluster(cluster)
        if last.started is None:
            raise end("trimtab.rounds no longer says what the job was started with", FAILED)
        found, problems = explain_settings(last.newest.overrides, last.started)
    shown = [each for each in found if not changed or each.source != "default"]
    for problem in problems:
        typer.echo(problem, err=True)
    if json:
        print(msgspec.json.encode(_for_programs(last.newest, shown)).decode())
        return
    console = Console(width=None if sys.stdout.isatty() else 200)
    console.print(_table(shown), highlight=False)
    typer.echo(
        f"as of round {last.newest.round} of {iso(last.newest.at)}, after "
        f"{last.newest.settings_version} changes; those of {FIXED}* are fixed while the job runs",
        err=True,
    )


@settings_commands.command("set")
def set_values(
    cluster: Cluster,
    values: Annotated[list[str], typer.Argument(help="NAME=VALUE, by trimtab's or Pulsar's name.")],
    wait: Wait = 0.0,
    unchecked: Unchecked = False,
    config: Config = None,
) -> None:
    """Change settings from the next round on, all together or none."""
    wrong = [f"{each}: must be NAME=VALUE" for each in values if not each.partition("=")[1]]
    if wrong:
        raise end("\n".join(wrong), USAGE)
    given = {name: parse_value(text) for name, _, text in (v.partition("=") for v in values)}
    send(
        new_intent(IntentKind.SETTINGS, cluster, settings=given),
        config,
        unchecked=unchecked,
        wait_s=wait,
    )


@settings_commands.command("reset")
def reset(  # noqa: PLR0913 - the options of a command line
    cluster: Cluster,
    names: Annotated[list[str] | None, typer.Argument(help="By either name.")] = None,
    every: Annotated[bool, typer.Option("--all", help="All settings.")] = False,
    wait: Wait = 0.0,
    unchecked: Unchecked = False,
    config: Config = None,
) -> None:
    """Return settings to what the job was started with."""
    if every == bool(names):
        raise end("give either names of settings or --all", USAGE)
    intent = new_intent(IntentKind.RESET, cluster, names=tuple(names or ()))
    send(intent, config, unchecked=unchecked, wait_s=wait)


def _table(found: list[Effective]) -> Table:
    table = Table("setting", "value", "from", "started with", box=None, pad_edge=False)
    for each in found:
        table.add_row(*_cells(each))
    return table


def _cells(each: Effective) -> Iterator[str]:
    yield each.name
    yield escape(msgspec.json.encode(each.value).decode())
    yield each.source
    yield escape(msgspec.json.encode(each.started).decode()) if each.source == "intent" else ""


def _for_programs(last: RoundRecord, found: list[Effective]) -> dict[str, object]:
    return {
        "v": 1,
        "round": last.round,
        "at": last.at,
        "settingsVersion": last.settings_version,
        "settings": [each._asdict() for each in found],
    }
