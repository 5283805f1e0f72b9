"""`trimtab config`: settings of a cluster, changed while its job runs, and files of settings."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from admin.ending import end
from admin.exit_codes import USAGE
from admin.output import Shown, text
from admin.session import Session
from admin.settings_file import tables
from admin.verbs import Change, acts, reads
from control.config_import.broker_conf import import_conf
from control.config_import.java_properties import MalformedProperties, parse
from control.settings import parse_value
from streaming.config import InvalidConfig, load_config
from trimtab.cluster.intents.settings import FIXED
from trimtab.settings.setting import InvalidSettings

config_commands = typer.Typer(help="The settings of a cluster, and files.", no_args_is_help=True)


@config_commands.command("show")
@reads
def show_settings(
    session: Session,
    changed: Annotated[
        bool, typer.Option("--changed", help="Only settings that differ from their default.")
    ] = False,
) -> Shown:
    """Show the settings in force, and where each comes from: default, file or intent."""
    found = [each for each in session.get("settings") if not changed or each["source"] != "default"]
    columns = {"name": text, "value": _value, "source": text}
    note = f"those of {FIXED}* are fixed while the job runs"
    return Shown(found, found, columns, {"started": _value}, notes=[note])


@config_commands.command("set")
@acts
def set_values(
    _: Session,
    values: Annotated[list[str], typer.Argument(help="NAME=VALUE, by trimtab's or Pulsar's name.")],
) -> Change:
    """Change settings from the next round on, all together or none."""
    wrong = [f"{each}: must be NAME=VALUE" for each in values if not each.partition("=")[1]]
    if wrong:
        raise end("\n".join([*wrong, "Next: trimtab config show"]), USAGE)
    given = {name: parse_value(text) for name, _, text in (v.partition("=") for v in values)}
    return Change("PATCH", "settings", {"settings": given})


@config_commands.command("reset")
@acts
def reset(
    _: Session,
    names: Annotated[list[str] | None, typer.Argument(help="trimtab's or Pulsar's name.")] = None,
    every: Annotated[bool, typer.Option("--all", help="All settings.")] = False,
) -> Change:
    """Return settings to what the job was started with."""
    if every == bool(names):
        raise end("give either names of settings or --all\nNext: trimtab config show", USAGE)
    return Change("DELETE", "settings", query={"name": names or ()})


@config_commands.command("validate")
def validate(file: Annotated[Path, typer.Argument(help="A TOML file of settings.")]) -> None:
    """List every problem of a settings file; exit code 2 if there is one."""
    _load(file)
    typer.echo(f"{file} is valid", err=True)


@config_commands.command("diff")
@reads
def diff(
    session: Session, file: Annotated[Path, typer.Argument(help="A TOML file of settings.")]
) -> Shown:
    """Show where a settings file differs from what is in force."""
    wanted: dict[str, Any] = _load(file).round_settings().dumped()
    rows = [
        {**each, "file": wanted[each["name"]]}
        for each in session.get("settings")
        if each["name"] in wanted and wanted[each["name"]] != each["value"]
    ]
    columns = {"name": text, "value": _value, "source": text, "file": _value}
    return Shown(rows, rows, columns)


@config_commands.command("import")
def import_broker_conf(
    file: Annotated[Path, typer.Argument(help="A Pulsar broker.conf.")],
    every: Annotated[bool, typer.Option("--all", help="Print defaults too.")] = False,
) -> None:
    """Print a broker.conf as settings for --config; exit code 2 if a value cannot be used."""
    try:
        found = import_conf(parse(file.read_bytes().decode("iso-8859-1")))
    except OSError as error:
        raise end(f"{file}: {error.strerror}", USAGE) from None
    except (MalformedProperties, InvalidSettings) as error:
        told = [f"{file}: nothing is imported:", *error.problems, f"Next: edit {file}"]
        raise end("\n".join(told), USAGE) from None
    for note in found.notes:
        typer.echo(note, err=True)
    typer.echo(
        f"{file}: settings imported: {len(found.sources)}, of them other than Pulsar's defaults: "
        f"{found.changed}; keys not imported: {found.not_imported}, not about load balancing: "
        f"{found.ignored}",
        err=True,
    )
    print(tables(found.settings, found.sources, every=every), end="")


def _load(file: Path) -> Any:
    try:
        return load_config(file)
    except InvalidConfig as error:
        raise end(error.told(f"{file}"), USAGE) from None


def _value(value: object) -> str:
    return msgspec.json.encode(value).decode()
