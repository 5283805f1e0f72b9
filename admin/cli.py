"""`trimtab`: for people at a terminal. Requested output goes to stdout, all else to stderr."""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from typing import Annotated

import typer
from rich.console import Console

from admin.commands.advise import advise
from admin.commands.brokers import broker_commands
from admin.commands.bundles import bundle_commands
from admin.commands.clusters import cluster_commands, status
from admin.commands.config import config_commands
from admin.commands.contexts import context_commands
from admin.commands.controls import (
    budget_commands,
    mode_commands,
    pin_commands,
    window_commands,
)
from admin.commands.namespaces import namespace_commands
from admin.commands.outcome import outcome
from admin.commands.plans import plan_commands
from admin.commands.policies import policy_commands
from admin.commands.rounds import pause, resume, round_commands
from admin.commands.tools.api import serve_api
from admin.commands.tools.audit import audit
from admin.commands.tools.doctor import doctor
from admin.commands.tools.kafka import kafka_commands
from admin.commands.tools.options import Config
from admin.commands.tools.replay import replay
from admin.commands.tools.simulate import simulate
from admin.commands.tools.tokens import token_commands
from admin.commands.top import top
from admin.commands.topics import topic_commands
from admin.commands.why import why
from admin.conformance.command import conformance
from admin.demo.display import summary
from admin.demo.processes import DemoFailed, spark_jars
from admin.demo.run import Demo, DemoOptions
from admin.ending import end
from admin.exit_codes import FAILED, OK, USAGE
from admin.main import INTERRUPTED
from deploy.jars import JarError
from deploy.process import ServerError
from simulation.parity import decision
from simulation.profile import InvalidProfile
from sinks.errors import SinkError
from streaming.config import InvalidConfig, load_config
from streaming.logs import LogLevelOption, configure

# Typer's own tracebacks would show local variables, including passwords.
app = typer.Typer(
    name="trimtab",
    help="Keeps a fleet of Pulsar-style brokers balanced with the fewest moves.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
for commands, name in (
    (broker_commands, "brokers"),
    (bundle_commands, "bundles"),
    (cluster_commands, "clusters"),
    (config_commands, "config"),
    (context_commands, "contexts"),
    (kafka_commands, "kafka"),
    (namespace_commands, "namespaces"),
    (plan_commands, "plans"),
    (pin_commands, "pins"),
    (mode_commands, "modes"),
    (budget_commands, "budgets"),
    (window_commands, "windows"),
    (policy_commands, "policies"),
    (round_commands, "rounds"),
    (token_commands, "tokens"),
    (topic_commands, "topics"),
):
    app.add_typer(commands, name=name)
for command in (
    status,
    top,
    why,
    pause,
    resume,
    outcome,
    advise,
    doctor,
    audit,
    replay,
    simulate,
    conformance,
):
    app.command()(command)
app.command("api")(serve_api)


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


def main() -> None:
    """The console script."""
    # What librdkafka says of each attempt is no answer; a failure is told once, by its command.
    configure("info")
    app()
