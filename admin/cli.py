"""`trimtab`: for people at a terminal. Requested output goes to stdout, all else to stderr."""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from dataclasses import asdict
from http.client import HTTPException
from pathlib import Path
from typing import Annotated, Final
from urllib.request import urlopen

import msgspec
import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from admin.commands.api import make_token, serve_api
from admin.commands.audit import Auditor, follow
from admin.commands.listing import broker_commands, bundle_commands
from admin.commands.namespaces import namespace_commands
from admin.commands.options import Config, Json
from admin.commands.outcome import outcome
from admin.commands.policy import policy_commands
from admin.commands.replay import Impossible, bound_of, run_replay, show, strategy_of
from admin.commands.settings import settings_commands
from admin.commands.simulate import simulate
from admin.commands.split import split
from admin.commands.status import status
from admin.commands.tell import tell
from admin.commands.unload import unload
from admin.commands.why import why
from admin.conformance.command import conformance
from admin.demo.display import summary
from admin.demo.processes import METRICS_PORT, DemoFailed, spark_jars
from admin.demo.run import Demo, DemoOptions
from admin.ending import FAILED, FINDINGS, USAGE, end, end_unserved
from admin.job_checks import (
    check_checkpoint,
    check_environment,
    check_settings,
    check_size,
    local_checkpoint,
)
from admin.main import INTERRUPTED
from admin.settings_file import tables
from control.config_import.broker_conf import import_conf
from control.config_import.java_properties import MalformedProperties, parse
from deploy import doctor as checks
from deploy.finding import Finding, bad, good
from deploy.jars import JarError
from deploy.ports import is_free
from deploy.process import ServerError
from simulation.parity import decision
from simulation.profile import InvalidProfile
from simulation.replay.recorded import RecordedTopics
from simulation.replay.span import Asked, Bound
from sinks.errors import UNOPENED, SinkError
from sinks.kafka.topics import create_missing
from sinks.redis.server.connections import redis_client
from streaming.config import InvalidConfig, load_config
from streaming.logs import LogLevelOption, configure
from trimtab import metrics
from trimtab.auditing.auditor import NOTES, Violation
from trimtab.settings.setting import InvalidSettings

OK: Final = 0


# Typer's own tracebacks would show local variables, including passwords.
app = typer.Typer(
    name="trimtab",
    help="Keeps a fleet of Pulsar-style brokers balanced with the fewest moves.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
config_commands = typer.Typer(help="Settings of the job.", no_args_is_help=True)
app.add_typer(config_commands, name="config")
app.command()(conformance)
app.add_typer(settings_commands, name="settings")
app.add_typer(policy_commands, name="policy")
app.command()(simulate)
app.command()(split)
app.add_typer(broker_commands, name="brokers")
app.add_typer(bundle_commands, name="bundles")
app.add_typer(namespace_commands, name="namespaces")
app.command("api")(serve_api)
app.command("api-token")(make_token)
app.command()(status)
app.command()(tell)
app.command()(unload)
app.command()(outcome)
app.command()(why)


@app.command()
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
    json: Json = False,
) -> None:
    """Say what is missing here, each with the next command to type. Exit code 6 if so."""
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
    if json:
        report = {"v": 1, "findings": [asdict(finding) for finding in findings]}
        print(msgspec.json.encode(report).decode())
    else:
        _show_findings(findings)
    raise typer.Exit(OK if all(finding.ok for finding in findings) else FINDINGS)


@app.command()
def demo(  # noqa: PLR0913 - the options of a command line
    seconds: Annotated[
        float, typer.Option(min=1, help="How long it runs, from its first round on.")
    ] = 180,
    start_seconds: Annotated[
        float, typer.Option(min=1, help="How long it may take until that round.")
    ] = 300,
    keep: Annotated[
        bool, typer.Option("--keep", help="Leave all running afterwards, until Ctrl-C.")
    ] = False,
    seed: Annotated[int | None, typer.Option(min=0, help="Another fleet of the same kind.")] = None,
    brokers: Annotated[int | None, typer.Option(help="Instead of 12.")] = None,
    bundles: Annotated[int | None, typer.Option(help="Instead of 480.")] = None,
    plain: Annotated[bool, typer.Option("--plain", help="Lines instead of a picture.")] = False,
) -> None:
    """Watch the job balance a simulated fleet on an embedded Kafka and Redis; 1 if it did not."""
    console = Console(stderr=True)
    options = DemoOptions(seconds, start_seconds, keep, seed, brokers, bundles, plain)
    run = Demo(options, console)
    try:
        run.run()
    except InvalidProfile as error:
        raise end(str(error), USAGE) from None
    except DemoFailed as error:
        raise end(str(error), FAILED) from None
    except (ServerError, JarError, SinkError) as error:
        raise end(f"{error}\nNext: trimtab doctor", FAILED) from None
    except KeyboardInterrupt:
        raise end("interrupted before the fleet ran", INTERRUPTED) from None
    print(summary(run.story, run.moves))
    raise typer.Exit(OK if run.story.balanced_since else FAILED)


@app.command()
def parity() -> None:
    """Answer cases of Pulsar's decisions, a JSON line each, from stdin; 1 if one has no answer."""
    failed = 0
    for line in sys.stdin:
        if line.strip():
            decided = decision(line)
            failed += "error" in decided
            # A caller on a pipe waits for each answer.
            print(json.dumps(decided), flush=True)
    if failed:
        raise end(f"{failed} cases have no answer", FAILED)


@app.command()
def job(
    config: Config = None,
    standby: Annotated[
        bool, typer.Option("--standby", help="Wait until the active driver is gone.")
    ] = False,
    log_level: LogLevelOption = None,
) -> None:
    """Balance a fleet until stopped: trimtab-job with the connector's jars from the cache."""
    # Imported here: Spark takes a second to import, and doctor must run without it.
    from streaming.job import run

    try:
        # run reports wrong settings.
        with suppress(InvalidConfig):
            if not load_config(config).spark.jars:
                os.environ["TRIMTAB_SPARK__JARS"] = spark_jars()
    except JarError as error:
        raise end(str(error), FAILED) from None
    run(config, standby, log_level)


@app.command()
def topics(config: Config = None) -> None:
    """Make the Kafka topics that are missing; 6 if one that exists would make the job wrong."""
    try:
        settings = load_config(config)
        ensured = create_missing(settings.kafka.bootstrap, settings.kafka.client)
    except InvalidConfig as error:
        raise end("\n".join(["wrong settings:", *error.problems]), USAGE) from None
    except SinkError as error:
        raise end_unserved(error, config, settings.kafka.bootstrap) from None
    for name in ensured.created:
        print(f"{name}: created")
    for name in ensured.existing:
        print(f"{name}: was there")
    for finding in ensured.findings:
        print(f"{finding}{'; the job does not start' if finding.vital else ''}")
        print(f"  {finding.remedy(settings.kafka.bootstrap)}")
    raise typer.Exit(FINDINGS if ensured.findings else OK)


@app.command()
def audit(  # noqa: PLR0913 - the options of a command line
    kafka: Annotated[
        str | None, typer.Option(help="With the journal; instead of the settings' own.")
    ] = None,
    redis: Annotated[
        str | None,
        typer.Option(
            help="URL, to compare its records; default: that of --config.",
            envvar="TRIMTAB_REDIS_URL",
        ),
    ] = None,
    cluster: Annotated[str | None, typer.Option(help="Only this one.")] = None,
    follows: Annotated[bool, typer.Option("--follow", help="Go on until interrupted.")] = False,
    json: Annotated[bool, typer.Option("--json", help="A line each, for programs.")] = False,
    config: Config = None,
) -> None:
    """Check by the journal that every bundle had one owner at most; 6 if a rule was broken."""
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
        raise end("\n".join(["wrong settings:", *error.problems]), USAGE) from None
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


@app.command()
def replay(  # noqa: PLR0913 - the options of a command line
    since: Annotated[
        Bound,
        typer.Option("--from", parser=bound_of, help="A batch's number, or a time (ISO)."),
    ],
    until: Annotated[Bound, typer.Option("--to", parser=bound_of, help="That batch too.")],
    kafka: Annotated[
        str | None, typer.Option("--kafka", "--bootstrap", help="Instead of the settings' own.")
    ] = None,
    cluster: Annotated[str | None, typer.Option(help="Only this one.")] = None,
    query: Annotated[str | None, typer.Option(help="Id, where batches of several match.")] = None,
    strategy: Annotated[
        str, typer.Option(parser=strategy_of, help="Also show what this strategy would do.")
    ] = "",
    config: Config = None,
) -> None:
    """Run recorded batches again: 0 if rounds and commands come out the same, byte for byte; 1 if
    they do not; 2 if it cannot be told."""
    try:
        settings = load_config(config).kafka
        asked = Asked(since, until, query, cluster)
        address = kafka or settings.bootstrap
        verdict = run_replay(lambda: RecordedTopics(address, settings.client), asked, strategy)
    except (InvalidConfig, Impossible) as error:
        raise end(str(error), USAGE) from None
    except SinkError as error:
        raise end_unserved(error, None if kafka else config, kafka) from None
    show(Console(), verdict, strategy)
    raise typer.Exit(verdict.status)


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


def main() -> None:
    """The console script."""
    # What librdkafka says of each attempt is no answer; a failure is told once, by its command.
    configure("info")
    app()


def _check_metrics_port(port: int) -> Finding:
    address = f"127.0.0.1:{port}"
    if port == 0 or is_free(port):
        return good("metrics port", f"{address} is free" if port else "any free one")
    # A job that already runs here is fine.
    with (
        suppress(OSError, HTTPException),
        urlopen(f"http://{address}/metrics", timeout=2) as answer,
    ):
        if metrics.GENERATION.name.encode() in answer.read():
            return good("metrics port", f"{address} is served by a trimtab job")
    return bad("metrics port", f"{address} is taken", f"ss -ltnp 'sport = {port}'")


def _show_violation(violation: Violation, *, json: bool) -> None:
    if json:
        print(msgspec.json.encode({"v": 1, **msgspec.to_builtins(violation)}).decode(), flush=True)
    else:
        print(violation, flush=True)


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
