"""`trimtab audit`: checks by the journal that every bundle had one owner at most."""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated

import msgspec
import typer

from admin.auditor import Auditor, follow
from admin.commands.tools.options import Config
from admin.ending import end, end_unserved
from admin.exit_codes import FINDINGS, OK, USAGE
from sinks.errors import UNOPENED, SinkError
from sinks.redis.server.connections import redis_client
from streaming.config import InvalidConfig, load_config
from trimtab.auditing.auditor import NOTES, Violation


def audit(  # noqa: PLR0913 - the options of a command line
    kafka: Annotated[
        str | None, typer.Option(help="The one with the journal; default: that of --config.")
    ] = None,
    redis: Annotated[
        str | None,
        typer.Option(
            help="URL, to compare its records; default: that of --config.",
            envvar="TRIMTAB_REDIS_URL",
        ),
    ] = None,
    cluster: Annotated[str | None, typer.Option(help="Only this cluster.")] = None,
    follows: Annotated[bool, typer.Option("--follow", help="Continue until interrupted.")] = False,
    json: Annotated[
        bool, typer.Option("--json", help="Print JSON, one line for each finding.")
    ] = False,
    config: Config = None,
) -> None:
    """Check in the journal that no bundle had two owners; exit code 6 if a rule was broken."""
    broken = 0
    try:
        settings = load_config(config)
        url = redis or (settings.redis_url.get_secret_value() if config else None)
        client = redis_client(url) if url else None
        address = kafka or settings.kafka.bootstrap
        with (
            Auditor(address, client, cluster, options=settings.kafka.client) as auditor,
            suppress(KeyboardInterrupt),
        ):
            for violation in follow(auditor) if follows else auditor.check():
                broken += violation.kind not in NOTES
                _show_violation(violation, json=json)
    except InvalidConfig as error:
        raise end(error.told(), USAGE) from None
    except SinkError as error:
        raise end_unserved(error, config, kafka or (None if config else address), redis) from None
    if cluster and not broken + auditor.changes + auditor.commands:
        there = ", ".join(sorted(auditor.others)) or "none at all"
        raise end(f"nothing is known of a cluster {cluster}; there are entries of: {there}", USAGE)
    for name in sorted(auditor.closed):
        typer.echo(
            f"{name} is closed, so its records in Redis were not compared: {UNOPENED}", err=True
        )
    typer.echo(
        f"{auditor.changes} changes of {auditor.audit.bundles} bundles and {auditor.commands} "
        f"commands read, {auditor.unreadable} entries unreadable, {broken} rules broken",
        err=True,
    )
    raise typer.Exit(FINDINGS if broken else OK)


def _show_violation(violation: Violation, *, json: bool) -> None:
    if json:
        print(msgspec.json.encode({"v": 1, **msgspec.to_builtins(violation)}).decode(), flush=True)
    else:
        print(violation, flush=True)
