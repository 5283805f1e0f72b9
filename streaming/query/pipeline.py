"""The streaming query: reports are decoded where they are fetched, then two operators in a chain;
intents and ownership enter between them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from pyspark.sql import DataFrame, SparkSession

from sources.topics import KafkaSource, select_rows
from streaming.config import KafkaConfig
from streaming.query.broker_operator import BrokerOperator
from streaming.query.cluster_operator import ClusterOperator
from streaming.query.reports.source import ReportStream
from trimtab.intake.snapshot import IntakeSettings
from trimtab.settings import Settings
from trimtab.wire import keys
from trimtab.wire.rows import ROW_SCHEMA, Tag

_RECORDS: Final = 5
"""Records in a batch for each report. Fewer: a job that starts without a checkpoint knows late who
owns what; more: a batch takes longer."""


def source_of(kafka: KafkaConfig) -> KafkaSource:
    """Return the job's Kafka source."""
    return KafkaSource(
        kafka.bootstrap,
        kafka.starting_offsets,
        kafka.fetch_wait_ms,
        kafka.max_offsets_per_trigger,
        kafka.options,
    )


def for_records(source: KafkaSource) -> KafkaSource:
    """The source for topics of records that are a hundredth of a report: at a start there is one of
    each bundle."""
    return replace(source, max_offsets=_RECORDS * source.max_offsets)


def reports_of(kafka: KafkaConfig, first: Mapping[str, int], tasks: int, due: str) -> ReportStream:
    """Return the job's load reports; a new query begins at ``first``, by partition. ``due``: the
    file that tells which rounds are due."""
    return ReportStream(
        kafka.bootstrap,
        first,
        kafka.max_offsets_per_trigger,
        kafka.fetch_wait_ms,
        kafka.client,
        tasks,
        kafka.skips_lost,
        due,
    )


def snapshots_of(parcels: DataFrame, intake: IntakeSettings) -> DataFrame:
    """What operator ① makes of the reports."""
    return parcels.groupBy("shard").transformWithState(
        BrokerOperator(intake), ROW_SCHEMA, outputMode="Append", timeMode="ProcessingTime"
    )


def rows(
    spark: SparkSession,
    reports: ReportStream,
    source: KafkaSource,
    intake: IntakeSettings,
    defaults: Settings,
) -> DataFrame:
    """The rows for the sinks, from reports, intents and the ownership journal."""
    snapshots = snapshots_of(reports.read(spark), intake)
    small = for_records(source)
    intents = select_rows(small.read(spark, keys.CONTROL), Tag.INTENT)
    changes = select_rows(small.read(spark, keys.OWNERSHIP), Tag.CHANGE)
    return (
        snapshots.unionByName(intents)
        .unionByName(changes)
        .groupBy("cluster")
        .transformWithState(
            ClusterOperator(defaults), ROW_SCHEMA, outputMode="Append", timeMode="ProcessingTime"
        )
    )
