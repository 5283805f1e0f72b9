"""`trimtab migration`: topics to another cluster, in waves, with a way back."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Annotated, Any

import typer
from rich.text import Text

from admin.migration_notes import NAMED, notes, waiting, waits_for, wave, why
from admin.output import Shown, moment, text
from admin.session import Session
from admin.verbs import Change, Limit, acts, reads
from control.next_command import command
from trimtab.explaining.words import format_count
from trimtab.migration.scopes import is_scope

migration_commands = typer.Typer(
    help="Take topics to another cluster (blue-green), without losing a message.",
    no_args_is_help=True,
)

Migration = Annotated[str, typer.Argument(help="Its id, as `trimtab migration status` shows it.")]
OptionalMigration = Annotated[str, typer.Argument(help="Its id; all without one.")]
Scope = Annotated[
    str, typer.Option(help="cluster, a namespace (t/ns), or persistent://t/ns/topic.")
]
Web = Annotated[str, typer.Option("--service-url", help="Green's web service, http://host:8080.")]
WebTls = Annotated[str, typer.Option("--service-url-tls", help="The same with TLS, https://.")]
Broker = Annotated[
    str, typer.Option("--broker-service-url", help="Where clients connect, pulsar://host:6650.")
]
BrokerTls = Annotated[
    str, typer.Option("--broker-service-url-tls", help="The same with TLS, pulsar+ssl://.")
]
Waves = Annotated[
    list[str],
    typer.Option(
        "--wave",
        help="In order, comma-separated scopes, each wave with @SHARE if not all of them: "
        "t/ns@0.05. What is in none follows last. A number after the last @ is the share: a topic "
        "whose name ends so has @1 after it.",
    ),
]
Backlog = Annotated[
    int, typer.Option(min=0, help="Most messages left on blue before the next wave begins.")
]
Errors = Annotated[
    float, typer.Option(min=0.0, max=1.0, help="Largest share of steps that may fail.")
]

WithoutGreen = Annotated[
    bool,
    typer.Option(
        "--without-green",
        help="Green is lost for good: bring topics back without asking it, also in a rollback that "
        "waits for it. Writes that green accepted are lost. If it still runs, both accept writes.",
    ),
]


def _body(
    scope: str,
    urls: tuple[str, str, str, str],
    waves: list[str],
    backlog: int,
    errors: float,
) -> dict[str, Any]:
    names = ("serviceUrl", "serviceUrlTls", "brokerServiceUrl", "brokerServiceUrlTls")
    return {
        "scope": scope,
        "target": dict(zip(names, urls, strict=True)),
        "waves": [_wave(each) for each in waves],
        "backlog": backlog,
        "errors": errors,
    }


def _wave(said: str) -> dict[str, Any]:
    scopes, at, share = said.rpartition("@")
    try:
        number = float(share)
    except ValueError:
        number = math.nan
    if at and math.isfinite(number):
        return {"scopes": _scopes(scopes), "share": number}
    if at and "://" not in _scopes(scopes)[-1]:
        raise typer.BadParameter(f"--wave {said}: what stands after @ must be a number")
    # An @ in a topic's name, or none.
    return {"scopes": _scopes(said), "share": 1.0}


def _scopes(said: str) -> list[str]:
    """Scopes between commas; a comma that no scope follows is a part of a topic's name."""
    found = list[str]()
    for part in said.split(","):
        if found and "://" in found[-1] and not is_scope(part):
            found[-1] += f",{part}"
        else:
            found.append(part)
    return found


@migration_commands.command("plan")
@reads
def plan(  # noqa: PLR0913 - the options of the command
    session: Session,
    scope: Scope = "cluster",
    service_url: Web = "",
    service_url_tls: WebTls = "",
    broker_service_url: Broker = "",
    broker_service_url_tls: BrokerTls = "",
    wave: Waves = [],  # noqa: B006 - Typer's form of an option that may be repeated
    backlog: Backlog = 0,
    errors: Errors = 0.05,
) -> Shown:
    """Check a migration without starting it: names every problem, and asks green."""
    urls = (service_url, service_url_tls, broker_service_url, broker_service_url_tls)
    body = _body(scope, urls, wave, backlog, errors)
    found = session.ask("POST", session.path("migrations"), body, {"dryRun": True})
    return Shown(found, [found], {"what": text}, notes=found["notes"])


@migration_commands.command("start")
@acts
def start(  # noqa: PLR0913 - the options of the command
    _: Session,
    scope: Scope = "cluster",
    service_url: Web = "",
    service_url_tls: WebTls = "",
    broker_service_url: Broker = "",
    broker_service_url_tls: BrokerTls = "",
    wave: Waves = [],  # noqa: B006 - Typer's form of an option that may be repeated
    backlog: Backlog = 0,
    errors: Errors = 0.05,
) -> Change:
    """Start a migration; prints its id."""
    urls = (service_url, service_url_tls, broker_service_url, broker_service_url_tls)
    begun = "the migration has begun: `trimtab migration status` says how far it is"
    return Change("POST", "migrations", _body(scope, urls, wave, backlog, errors), done=begun)


@migration_commands.command("status")
@reads
def status(session: Session, migration: OptionalMigration = "") -> Shown:
    """Show how far migrations have come; for one, each namespace and what delays it most."""
    if migration:
        report = session.get(f"migrations/{migration}/report", limit=NAMED)
        found = report["told"]
        rows = [{"namespace": name, **each} for name, each in sorted(found["namespaces"].items())]
        said = [*notes(found, session.cluster), *waiting(report["waiting"])]
        return Shown(found, rows, {"namespace": text, **_COUNTS}, notes=said)
    all_of_them = session.get("migrations")
    rows = [
        {**each["total"], **each, **it, "wave": wave(it), "why": why(it, each["lost"])}
        for each in all_of_them
        for it in (each["migration"],)
    ]
    columns = {"id": text, "scope": text, "state": text, "wave": text, "left": text, **_COUNTS}
    shown = {**columns, "ends": moment, "why": text}
    said = [f"Next: {line}" for line in _look_closer(session, all_of_them)]
    return Shown(all_of_them, rows, shown, {"at": moment, "by": text, "reason": text}, notes=said)


@migration_commands.command("pause")
@acts
def pause(_: Session, migration: Migration) -> Change:
    """Start no further topic; topics that were terminated go on to green."""
    return Change("POST", f"migrations/{migration}/pause")


@migration_commands.command("resume")
@acts
def resume(_: Session, migration: Migration) -> Change:
    """Go on with a migration that a person or its gate has paused."""
    return Change("POST", f"migrations/{migration}/resume")


@migration_commands.command("rollback")
@acts
def roll_back(_: Session, migration: Migration, without_green: WithoutGreen = False) -> Change:
    """Bring back the topics that were not written on green; the others continue to green."""
    query = {"withoutGreen": True} if without_green else {}
    begun = "the rollback has begun: `trimtab migration status` says how far it is"
    return Change("POST", f"migrations/{migration}/rollback", query=query, done=begun)


@migration_commands.command("report")
@reads
def report(session: Session, migration: Migration, limit: Limit = 100) -> Shown:
    """Show the result of a migration: topics that stay on green, fail, or are waited for."""
    found = session.get(f"migrations/{migration}/report", limit=limit)
    stays = ({"kind": "began" if row["began"] else "stays", **row} for row in found["stays"])
    kinds = {"failing": "failing", "waiting": "waits"}
    rows = [*stays, *({"kind": kinds[each], **row} for each in kinds for row in found[each])]
    rows = [{**row, "waits for": waits_for(row)} for row in rows]
    names = ("kind", "topic", "state", "backlog", "waits for", "problem")
    columns = dict.fromkeys(names, text)
    said = notes(found["told"], session.cluster, reported=True)
    if not rows:
        good = Text(_say_well(found["lost"]))
        return Shown(found, lines=[good], notes=said)
    more = ["there are more topics: --limit"] if found["cut"] else []
    return Shown(found, rows, columns, notes=more + said)


def _say_well(lost: int) -> str:
    """What the report says that names no topic; ``lost``: topics of which nothing is known."""
    if lost:
        topics = format_count(lost, "topic")
        return f"the records of {topics} or more are lost: nothing is known of those"
    return "a rollback leaves no topic on green, the last step of none failed, none waits"


_COUNTS = dict.fromkeys(
    (
        "active",
        "replicating",
        "terminated",
        "draining",
        "migrated",
        "stays",
        "began",
        "backlog",
        "errors",
    ),
    text,
)


def _look_closer(session: Session, all_of_them: list[dict[str, Any]]) -> Iterator[str]:
    """The command for each migration that waits for a person."""
    for each in all_of_them:
        it = each["migration"]
        if it["state"] == "paused" or each["bundles"]:
            yield command("migration", "status", it["id"], "--cluster", session.cluster)
