"""Checks, before the job claims, everything that it needs from Spark and its checkpoint."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from sinks.kafka.watermarks import watermarks
from streaming.config import JobConfig, SparkConfig
from streaming.failure import cause_of
from streaming.query.checkpoint import SOURCES, check_origin, check_writable
from streaming.query.folder import Folder
from streaming.query.pipeline import source_of
from streaming.query.session import spark_session
from streaming.readiness import NotReady
from streaming.working_folder import working_folder
from trimtab.wire import keys


def start_spark(config: SparkConfig, kept: ExitStack, *, verbose: bool = False) -> SparkSession:
    """Start a session, ``verbose`` with Spark's whole log; raises NotReady.

    It has a folder for its working files until ``kept`` closes.
    """
    folder = kept.enter_context(working_folder())
    try:
        return spark_session(config, folder=folder, verbose=verbose)
    except (PySparkException, Py4JError, OSError) as error:
        raise NotReady(
            f"Spark does not start: {cause_of(str(error)).removesuffix('.')}; trimtab doctor says "
            "whether the JDK fits"
        ) from error


def check_connector(spark: SparkSession, config: JobConfig) -> None:
    """Raise NotReady unless Spark reads from Kafka: it has its own client with its own options."""
    source = source_of(config.kafka)
    try:
        source.sample(spark, keys.CONTROL)
    except (PySparkException, Py4JError) as error:
        raise NotReady(
            f"Spark cannot read from Kafka at {source.bootstrap}: {cause_of(str(error))}; look at "
            "`spark.jars` (trimtab job knows them), `kafka.security` and `kafka.options`"
        ) from error


def check_checkpoint(spark: SparkSession, config: JobConfig) -> None:
    """Raise NotReady unless the job can continue from its checkpoint and write it.

    Also raises KafkaUnavailable and Misconfigured.
    """
    folder = Folder(spark, config.checkpoint)
    check_writable(folder)
    kafka = config.kafka
    asked = (
        None if kafka.skips_lost else partial(watermarks, kafka.bootstrap, SOURCES, kafka.client)
    )
    check_origin(folder, asked)
