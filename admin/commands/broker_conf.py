"""`trimtab config import`: prints what a Pulsar broker.conf means for the job."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from admin.ending import USAGE, end
from admin.settings_file import tables
from control.config_import.broker_conf import import_conf
from control.config_import.java_properties import MalformedProperties, parse
from trimtab.settings.setting import InvalidSettings

config_commands = typer.Typer(help="Settings of the job.", no_args_is_help=True)


@config_commands.command("import")
def import_broker_conf(
    file: Annotated[Path, typer.Argument(help="A Pulsar broker.conf.")],
    every: Annotated[bool, typer.Option("--all", help="Defaults too.")] = False,
) -> None:
    """Print the settings a broker.conf means, as tables for --config; 2 if one cannot be taken."""
    try:
        found = import_conf(parse(file.read_bytes().decode("iso-8859-1")))
    except OSError as error:
        raise end(f"{file}: {error.strerror}", USAGE) from None
    except (MalformedProperties, InvalidSettings) as error:
        raise end("\n".join([f"{file}: nothing is imported:", *error.problems]), USAGE) from None
    for note in found.notes:
        typer.echo(note, err=True)
    typer.echo(
        f"{file}: settings imported: {len(found.sources)}, of them other than Pulsar's defaults: "
        f"{found.changed}; keys not imported: {found.not_imported}, not about load balancing: "
        f"{found.ignored}",
        err=True,
    )
    print(tables(found.settings, found.sources, every=every), end="")
