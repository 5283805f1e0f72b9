"""`trimtab doctor`: checks this machine, its servers and a job's settings."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict
from http.client import HTTPException
from pathlib import Path
from typing import Annotated
from urllib.request import urlopen

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from admin.demo.processes import METRICS_PORT
from admin.exit_codes import FINDINGS
from admin.job_checks import (
    check_checkpoint,
    check_environment,
    check_settings,
    check_size,
    local_checkpoint,
)
from admin.output import Output, Shown, show
from admin.verbs import OutputOption
from deploy import doctor as checks
from deploy.finding import Finding, bad, good
from deploy.ports import is_free
from trimtab.metrics import job as metrics


def doctor(
    kafka: Annotated[
        str | None, typer.Option(help="Your own Kafka.", envvar="TRIMTAB_KAFKA__BOOTSTRAP")
    ] = None,
    redis: Annotated[
        str | None, typer.Option(help="URL of your own Redis.", envvar="TRIMTAB_REDIS_URL")
    ] = None,
    redis_replicas: Annotated[
        int | None,
        typer.Option(
            min=0, help="The job's setting of that name.", envvar="TRIMTAB_REDIS_REPLICAS"
        ),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(help="A job's settings: checks them, their servers and the checkpoint."),
    ] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Say what is missing here, with the next command to type; exit code 6 if anything is."""
    settings, findings = check_settings(config) if config else (None, check_environment())
    if settings is not None:
        kafka = kafka or settings.kafka.bootstrap
        redis = redis or settings.redis_url.get_secret_value()
        redis_replicas = settings.redis_replicas if redis_replicas is None else redis_replicas
        findings += [check_size(settings), *check_checkpoint(settings)]
    findings = [
        *checks.examine(
            kafka=kafka,
            redis=redis,
            redis_replicas=redis_replicas,
            kafka_client=settings.kafka.client if settings else {},
            run_dir=local_checkpoint(settings) if settings else None,
        ),
        *findings,
        _check_metrics_port(settings.metrics_port if settings else METRICS_PORT),
    ]
    if output in (Output.TABLE, Output.WIDE):
        _show_findings(findings)
    else:
        rows = [asdict(finding) for finding in findings]
        show(Shown({"v": 1, "findings": rows}, rows, {"name": str}), output)
    if any(not finding.ok for finding in findings):
        raise typer.Exit(FINDINGS)
    where = f" --config {config}" if config else ""
    typer.echo(f"nothing is missing here; if no job runs: trimtab job{where}", err=True)


def _check_metrics_port(port: int) -> Finding:
    address = f"127.0.0.1:{port}"
    if port == 0 or is_free(port):
        return good("metrics port", f"{address} is free: no job here" if port else "any free one")
    # A job that already runs here is fine.
    with (
        suppress(OSError, HTTPException),
        urlopen(f"http://{address}/metrics", timeout=2) as answer,
    ):
        if metrics.GENERATION.name.encode() in answer.read():
            return good("metrics port", f"{address} is served by a trimtab job")
    return bad("metrics port", f"{address} is taken", f"ss -ltnp 'sport = {port}'")


def _show_findings(findings: list[Finding]) -> None:
    console = Console()
    table = Table("", "what", "found", box=None, pad_edge=False)
    for finding in findings:
        mark = "[green]ok[/]" if finding.ok else "[red]no[/]"
        table.add_row(mark, finding.name, escape(finding.detail))
    console.print(table)
    # Several problems may have one remedy.
    for line in dict.fromkeys(
        f"{each.name}: {each.next_command}" for each in findings if not each.ok
    ):
        # Not wrapped, so that it can be copied.
        console.print(line, soft_wrap=True, highlight=False, markup=False)
