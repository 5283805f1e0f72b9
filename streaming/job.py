"""`trimtab-job`: reads its settings, stands by if asked to, and acts until it is stopped."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from types import FrameType
from typing import Annotated

import structlog
import typer
from pyspark.sql import SparkSession

from sinks.errors import Fenced, SinkError, Unavailable
from sinks.kafka.claim_reader import Signs
from sinks.kafka.topics import ensure_topics
from sinks.redis.server.connections import address, redis_client
from sinks.redis.server.survey import check_survey
from streaming.config import InvalidConfig, JobConfig, load_config
from streaming.driver import Driver
from streaming.leader.standby import Standby
from streaming.metrics.exposition import Exposition, PortTaken
from streaming.query.spark_checks import check_checkpoint, check_connector, start_spark
from streaming.readiness import NotReady
from streaming.shutdown import FAILED, FENCED, OK, UNREACHABLE, USAGE, Shutdown
from streaming.watchdog import halt

log = structlog.get_logger()


def check_services(config: JobConfig) -> None:
    """Check that the topics exist and that Redis is a single master.

    Raises SinkError with the address at fault, and NotReady where a topic's settings could let two
    brokers own one bundle.
    """
    bootstrap = config.kafka.bootstrap
    findings = ensure_topics(bootstrap, config.kafka.client)
    for finding in findings:
        if not finding.vital:
            log.warning("topic", finding=str(finding), next=finding.remedy(bootstrap))
    vital = [f"{each}; type: {each.remedy(bootstrap)}" for each in findings if each.vital]
    if vital:
        raise NotReady("\n".join(vital))
    with redis_client(config.redis_url.get_secret_value()) as client:
        found = check_survey(client)
        rule, shortage = found.rule(config.redis_replicas), found.shortage(config.redis_replicas)
        log.info("redis", address=address(client), version=found.version, replicas=rule)
        if shortage:
            log.warning("redis replicas", shortage=shortage)


def _check_redis(config: JobConfig) -> None:
    with redis_client(config.redis_url.get_secret_value()) as client:
        check_survey(client)


def stand_by(config: JobConfig, spark: SparkSession, shutdown: Shutdown) -> bool:
    """Wait until this driver must act; False if it must end. Raises SinkError and NotReady."""

    def fit() -> None:
        _check_redis(config)
        # The previous driver has advanced it since.
        check_checkpoint(spark, config)

    signs = Signs(config.kafka.bootstrap, config.kafka.client)
    try:
        return Standby(signs, fit, config.takeover_seconds).wait(shutdown)
    finally:
        signs.close()


def run(
    config: Annotated[Path | None, typer.Option(help="A TOML file of settings.")] = None,
    standby: Annotated[
        bool, typer.Option("--standby", help="Wait until the active driver is gone.")
    ] = False,
) -> None:
    """Balance the fleet until stopped."""
    try:
        settings = load_config(config)
        check_services(settings)
        shown = Exposition()
        server = shown.serve(settings.metrics_host, settings.metrics_port)
        log.info("metrics are served", host=settings.metrics_host, port=server.server_port)
        # For a standby too: starting Spark takes longer than taking over.
        spark = start_spark(settings.spark)
        check_connector(spark, settings)
        check_checkpoint(spark, settings)
        shutdown = _ended_by_signals()
        if (standby or settings.standby) and not stand_by(settings, spark, shutdown):
            raise SystemExit(OK)
        driver = Driver(settings, spark, shown, shutdown, halt)
    except InvalidConfig as error:
        print("wrong settings; nothing was started:", file=sys.stderr)
        for problem in error.problems:
            print(f"  {problem}", file=sys.stderr)
        raise SystemExit(USAGE) from None
    except (NotReady, PortTaken) as error:
        print(f"{error}; nothing was started", file=sys.stderr)
        raise SystemExit(FAILED) from None
    except SinkError as error:
        print(f"{error}; nothing was started", file=sys.stderr)
        raise SystemExit(_code_of(error)) from None
    raise SystemExit(driver.run())


def _ended_by_signals() -> Shutdown:
    shutdown = Shutdown()

    def end(_signal: int, _frame: FrameType | None) -> None:
        shutdown.set()

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)
    return shutdown


def _code_of(error: SinkError) -> int:
    match error:
        case Unavailable():
            return UNREACHABLE
        case Fenced():
            return FENCED
    return FAILED


def main() -> None:
    """The console script."""
    typer.run(run)
