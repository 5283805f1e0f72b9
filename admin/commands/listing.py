"""`trimtab brokers` and `trimtab bundles`: who is there, and who owns what."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Final

import msgspec
import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from admin.commands.connection import connect
from admin.commands.options import Cluster, Config, Json
from admin.ending import USAGE, end
from control.listing import BrokerRow, BundleRow, Wanted
from simulation.replay.span import iso
from trimtab.explaining.words import percent
from trimtab.ownership import State

broker_commands = typer.Typer(help="The brokers of a cluster.", no_args_is_help=True)
bundle_commands = typer.Typer(help="The bundles of a cluster.", no_args_is_help=True)

_WIDEST: Final = 10_000
"""Columns of a terminal that no table reaches."""


@broker_commands.command("list")
def brokers(cluster: Cluster, json: Json = False, config: Config = None) -> None:
    """List the brokers of the newest round, the busiest first."""
    with connect(config) as plane:
        rows = plane.brokers(plane.cluster(cluster))
    _print(rows, BrokerRow._fields, [_of_broker(row) for row in rows], json=json)


@bundle_commands.command("list")
def bundles(  # noqa: PLR0913 - the options of a command line
    cluster: Cluster,
    broker: Annotated[str, typer.Option(help="Owned by this one.")] = "",
    namespace: Annotated[str, typer.Option(help="tenant/namespace.")] = "",
    state: Annotated[State | None, typer.Option(help="With this state of the record.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="At most so many.")] = 100,
    after: Annotated[str, typer.Option(help="Those after this bundle, by name.")] = "",
    json: Json = False,
    config: Config = None,
) -> None:
    """List bundles with their owners, by name, as the store has them now."""
    wanted = Wanted(broker, namespace, state)
    with connect(config) as plane:
        shown, more = plane.bundles(cluster, wanted, after, limit)
        if not shown and (absent := plane.find_absence(cluster, wanted)):
            raise end(absent, USAGE)
    if not shown:
        typer.echo("none", err=True)
    _print(shown, BundleRow._fields, [_of_bundle(row) for row in shown], json=json)
    if more:
        typer.echo(f"there are more: --after {shown[-1].bundle}, or --limit", err=True)


def _print(
    rows: Sequence[Any], columns: Iterable[str], cells: Iterable[Sequence[str]], *, json: bool
) -> None:
    if json:
        told = {"v": 1, "rows": [row._asdict() for row in rows]}
        print(msgspec.json.encode(told).decode())
        return
    table = Table(*columns, box=None, pad_edge=False)
    for row in cells:
        table.add_row(*map(escape, row))
    # Names are copied from here: none is cut at the terminal's edge.
    needed = Console(width=_WIDEST).measure(table).maximum
    Console(width=max(needed, 1)).print(table, crop=False)


def _of_broker(row: BrokerRow) -> list[str]:
    usage, average = ("" if part is None else percent(part) for part in (row.usage, row.average))
    return [row.broker, row.state, usage, average, str(row.bundles)]


def _of_bundle(row: BundleRow) -> list[str]:
    return [row.bundle, row.state, row.owner, row.destination, row.epoch, iso(row.since)]
