"""`trimtab kafka`: trimtab's own topics on Kafka."""

from __future__ import annotations

import typer

from admin.commands.tools.options import Config
from admin.ending import end, end_unserved
from admin.exit_codes import FINDINGS, OK, USAGE
from sinks.errors import SinkError
from sinks.kafka.topics import create_missing
from streaming.config import InvalidConfig, load_config

kafka_commands = typer.Typer(help="trimtab's own topics on Kafka.", no_args_is_help=True)


@kafka_commands.command("create-topics")
def create_topics(config: Config = None) -> None:
    """Create missing Kafka topics; exit code 6 if an existing one would make the job wrong."""
    try:
        settings = load_config(config)
        ensured = create_missing(settings.kafka.bootstrap, settings.kafka.client)
    except InvalidConfig as error:
        raise end(error.told(), USAGE) from None
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
