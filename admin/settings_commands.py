"""`trimtab settings`: what a cluster's rounds decide by, changed and shown while the job runs."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Annotated, NamedTuple

import msgspec
import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from admin.ending import FAILED, USAGE, end, end_unserved
from admin.intents import Objections, last_rounds, new_intent, send
from admin.last_rounds import LastRounds
from admin.options import Cluster, Config, Json, Unchecked, Wait
from simulation.replay.span import iso
from sinks.errors import SinkError
from streaming.config import InvalidConfig, load_config
from trimtab.cluster.flaws import FIXED
from trimtab.cluster.intents import resolve_settings
from trimtab.cluster.job_settings import from_record, to_record
from trimtab.intake.snapshot import IntakeSettings
from trimtab.settings import IN_WORDS, Value
from trimtab.settings.setting import InvalidSettings
from trimtab.shedding import DEFAULTS
from trimtab.state.memory import Memory
from trimtab.wire.control import IntentKind
from trimtab.wire.rounds import JobSettings

settings_commands = typer.Typer(
    help="Settings of a cluster while the job runs.", no_args_is_help=True
)


class Effective(NamedTuple):
    """A setting in force: ``source`` is default, file (or environment), or intent."""

    name: str
    value: Value
    source: str
    started: Value
    """What the job was started with."""


@settings_commands.command("show")
def show(
    cluster: Cluster,
    changed: Annotated[bool, typer.Option("--changed", help="Not those at their default.")] = False,
    json: Json = False,
    config: Config = None,
) -> None:
    """Show the settings of the cluster's last round, and where each comes from."""
    try:
        last, started = last_rounds(load_config(config), cluster)
        if started is None:
            raise end("trimtab.rounds no longer says what the job was started with", FAILED)
        found, problems = effective(last, started)
    except (InvalidConfig, InvalidSettings, Objections) as error:
        raise end("\n".join(error.problems), USAGE) from None
    except SinkError as error:
        raise end_unserved(error, config) from None
    shown = [each for each in found if not changed or each.source != "default"]
    for problem in problems:
        typer.echo(problem, err=True)
    if json:
        print(msgspec.json.encode(_for_programs(last, shown)).decode())
        return
    console = Console(width=None if sys.stdout.isatty() else 200)
    console.print(_table(shown), highlight=False)
    typer.echo(
        f"as of round {last.round} of {iso(last.at)}, after {last.settings_version} changes; those "
        f"of {FIXED}* are fixed while the job runs",
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


def parse_value(text: str) -> Value:
    """Parse as JSON; text that is no number, no switch and not quoted stays text."""
    try:
        return msgspec.json.decode(text, type=bool | int | float | str)
    except msgspec.DecodeError:
        return text


def effective(last: LastRounds, started: JobSettings) -> tuple[list[Effective], list[str]]:
    """The settings in force, and the problems if the cluster's own changes are left out.

    Raises InvalidSettings if another version of trimtab recorded them.
    """
    intake, settings = from_record(started)
    memory = Memory(overrides=dict(last.overrides))
    now, problems = resolve_settings(memory, settings)
    overrides = {} if problems else settings.read(last.overrides)[0]
    defaults = to_record(IntakeSettings(), DEFAULTS)
    begun = to_record(intake, settings)
    found = [
        Effective(
            name,
            value,
            "intent"
            if name in overrides
            else _source(begun.defaults[name], defaults.defaults[name]),
            begun.defaults[name],
        )
        for name, value in to_record(intake, now).defaults.items()
    ]
    found += [
        Effective(FIXED + name, value, _source(value, defaults.intake[name]), value)
        for name, value in begun.intake.items()
    ]
    return sorted([*found, *_in_words(found)]), problems


def _in_words(found: list[Effective]) -> Iterator[Effective]:
    """The numbers that can be given in words, by that name."""
    of = {each.name: each for each in found}
    for name, words in IN_WORDS.items():
        number = of[words.path]
        now, started = words.word_of(number.value), words.word_of(number.started)
        yield Effective(name, now, number.source, started)


def _source(value: Value, default: Value) -> str:
    return "default" if value == default else "file"


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


def _for_programs(last: LastRounds, found: list[Effective]) -> dict[str, object]:
    return {
        "v": 1,
        "round": last.round,
        "at": last.at,
        "settingsVersion": last.settings_version,
        "settings": [each._asdict() for each in found],
    }
