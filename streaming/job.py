"""`trimtab-job`: reads its settings, stands by if asked to, and acts until it is stopped."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from threading import Thread
from types import FrameType
from typing import Annotated

import structlog
import typer
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from sinks.errors import Fenced, SinkError, Unavailable
from sinks.exposition import Exposition, PortTaken
from sinks.kafka.claim_reader import Signs
from sinks.kafka.topics import ensure_topics
from sinks.redis.server.connections import address, redis_client
from sinks.redis.server.survey import check_survey
from streaming.config import InvalidConfig, JobConfig, load_config
from streaming.driver import Driver
from streaming.environment import find_unknown
from streaming.leader.standby import Standby, StandbyOption
from streaming.logs import LogLevelOption, configure
from streaming.query.reports.source import warm_up
from streaming.query.session import jvm_end, stop_jvm
from streaming.query.spark_checks import check_checkpoint, check_connector, start_spark
from streaming.readiness import NotReady
from streaming.shutdown import FAILED, FENCED, OK, UNREACHABLE, USAGE, Shutdown
from streaming.supervisor import tell_alive, tell_ready
from streaming.watchdog import halt

log = structlog.get_logger()


def check_services(config: JobConfig) -> None:
    """Check Kafka's topics and Redis, as `check_topics` and `check_store` do.

    Raises ExceptionGroup with the error of each.
    """
    check_all(lambda: check_topics(config), lambda: check_store(config))


def check_all(*checks: Callable[[], object]) -> None:
    """Run all checks; raises ExceptionGroup with the errors, so that all are told at once."""
    errors: list[Exception] = []
    for check in checks:
        try:
            check()
        except (SinkError, NotReady, PortTaken) as error:
            errors.append(error)
    if errors:
        raise ExceptionGroup("the job cannot start", errors)


def check_topics(config: JobConfig) -> None:
    """Make missing topics.

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


def check_store(config: JobConfig) -> None:
    """Check that Redis is a single master; raises SinkError."""
    with redis_client(config.redis_url.get_secret_value()) as client:
        found = check_survey(client)
        rule, shortage = found.rule(config.redis_replicas), found.shortage(config.redis_replicas)
        log.info("redis", address=address(client), version=found.version, replicas=rule)
        if shortage:
            log.warning("redis replicas", shortage=shortage)


def serve_metrics(config: JobConfig, shown: Exposition) -> None:
    """Raises PortTaken."""
    server = shown.serve(config.metrics_host, config.metrics_port)
    log.info("metrics are served", host=config.metrics_host, port=server.server_port)


def check_memory(config: JobConfig) -> None:
    """Raises NotReady if this machine is too small for the fleet."""
    if why := config.find_shortage():
        raise NotReady(why)


def _check_redis(config: JobConfig) -> None:
    with redis_client(config.redis_url.get_secret_value()) as client:
        check_survey(client)


def stand_by(config: JobConfig, spark: SparkSession, shutdown: Shutdown) -> None:
    """Wait until this driver must act or end. Raises SinkError and NotReady."""

    def fit() -> None:
        _check_redis(config)
        # The previous driver has advanced it since.
        check_checkpoint(spark, config)

    signs = Signs(config.kafka.bootstrap, config.kafka.client)
    try:
        tell_ready("standing by")
        Standby(signs, fit, config.takeover_seconds, alive=tell_alive).wait(shutdown)
    finally:
        signs.close()


def run(
    config: Annotated[Path | None, typer.Option(help="A TOML file of settings.")] = None,
    standby: StandbyOption = False,
    log_level: LogLevelOption = None,
) -> None:
    """Balance the fleet until stopped."""
    with ExitStack() as kept:
        try:
            settings = load_config(config)
            level = log_level or settings.log_level
            configure(level)
            for each in find_unknown(os.environ, JobConfig):
                log.warning("an environment variable names no setting", variable=each.name)
            shown = Exposition()
            check_all(
                lambda: check_topics(settings),
                lambda: check_store(settings),
                lambda: serve_metrics(settings, shown),
                lambda: check_memory(settings),
            )
            # Before Spark: a start that is broken off would leave its JVM behind, for ever.
            shutdown = _ended_by_signals()
            begin = partial(start_spark, settings.sized_spark(), kept, verbose=level == "debug")
            driver = _start(settings, begin, shown, shutdown, standby)
        except InvalidConfig as error:
            print(error.told("wrong settings; nothing was started"), file=sys.stderr)
            raise SystemExit(USAGE) from None
        except ExceptionGroup as group:
            raise _not_started(group.exceptions, config, settings) from None
        except (NotReady, SinkError) as error:
            raise _not_started([error], config, settings) from None
        if driver is None:
            log.info("stopped before the job ran")
            raise SystemExit(OK)
        # Before its folder is deleted: it would still write there.
        kept.callback(stop_jvm)
        raise SystemExit(driver.run())


def _start(
    config: JobConfig,
    begin: Callable[[], SparkSession],
    shown: Exposition,
    shutdown: Shutdown,
    standby: bool,
) -> Driver | None:
    """Start Spark by ``begin``, wait where this is a standby, and claim; None where it is to end
    before that.

    Raises NotReady and SinkError.
    """
    try:
        # For a standby too: starting Spark takes longer than taking over.
        spark = begin()
        Thread(target=_warm_up, args=(spark,), daemon=True, name="warm-up").start()
        check_connector(spark, config)
        check_checkpoint(spark, config)
        if standby or config.standby:
            stand_by(config, spark, shutdown)
        return None if shutdown.is_set() else Driver(config, spark, shown, shutdown, halt)
    except (NotReady, SinkError, Py4JError, ConnectionError) as error:
        # A signal to the whole process group also ends the JVM, perhaps before us.
        if shutdown.is_set():
            return None
        if isinstance(error, NotReady | SinkError):
            raise
        raise NotReady(jvm_end(error)) from error


def _warm_up(spark: SparkSession) -> None:
    """Beside the checks; what fails here fails again where it is told."""
    with suppress(PySparkException, Py4JError, OSError):
        warm_up(spark)


def _ended_by_signals() -> Shutdown:
    shutdown = Shutdown()

    def end(_signal: int, _frame: FrameType | None) -> None:
        shutdown.set()

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)
    return shutdown


def _not_started(
    errors: Sequence[Exception], config: Path | None, settings: JobConfig
) -> SystemExit:
    """Tell all errors and the next command; the exit code."""
    print("\n".join(map(str, errors)) + "; nothing was started", file=sys.stderr)
    where = f"--config {config}" if config else f"--kafka {settings.kafka.bootstrap}"
    print(f"Next: trimtab doctor {where}", file=sys.stderr)
    codes = {_code_of(error) for error in errors}
    # Where anything needs an operator, to start it again does not help.
    return SystemExit(FAILED if FAILED in codes else codes.pop())


def _code_of(error: Exception) -> int:
    match error:
        case Unavailable():
            return UNREACHABLE
        case Fenced():
            return FENCED
    return FAILED


def main() -> None:
    """The console script."""
    typer.run(run)
