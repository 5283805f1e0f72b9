"""`trimtab`: for people at a terminal. Requested output goes to stdout, all else to stderr."""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from typing import Annotated

import typer
from rich.console import Console

from admin.commands.api import make_token, serve_api
from admin.commands.audit import audit
from admin.commands.broker_conf import config_commands
from admin.commands.doctor import doctor
from admin.commands.listing import broker_commands, bundle_commands
from admin.commands.namespaces import namespace_commands
from admin.commands.options import Config
from admin.commands.outcome import outcome
from admin.commands.policy import policy_commands
from admin.commands.replay import replay
from admin.commands.settings import settings_commands
from admin.commands.simulate import simulate
from admin.commands.split import split
from admin.commands.status import status
from admin.commands.tell import tell
from admin.commands.unload import unload
from admin.commands.why import why
from admin.conformance.command import conformance
from admin.demo.display import summary
from admin.demo.processes import DemoFailed, spark_jars
from admin.demo.run import Demo, DemoOptions
from admin.ending import FAILED, FINDINGS, OK, USAGE, end, end_unserved
from admin.main import INTERRUPTED
from deploy.jars import JarError
from deploy.process import ServerError
from simulation.parity import decision
from simulation.profile import InvalidProfile
from sinks.errors import SinkError
from sinks.kafka.topics import create_missing
from streaming.config import InvalidConfig, load_config
from streaming.logs import LogLevelOption, configure

# Typer's own tracebacks would show local variables, including passwords.
app = typer.Typer(
    name="trimtab",
    help="Keeps a fleet of Pulsar-style brokers balanced with the fewest moves.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.add_typer(config_commands, name="config")
app.command()(doctor)
app.command()(audit)
app.command()(replay)
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


def main() -> None:
    """The console script."""
    # What librdkafka says of each attempt is no answer; a failure is told once, by its command.
    configure("info")
    app()
