"""What a stopped query remembers, read from its checkpoint by Spark itself."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from streaming.query.broker_operator import SNAPSHOTS

# Spark numbers stateful operators from the query's end.
_CLUSTER_OPERATOR, _BROKER_OPERATOR = 0, 1


def broker_snapshots(spark: SparkSession, checkpoint: str) -> dict[tuple[str, str], bytes]:
    """Operator ①: cluster and broker to the packed snapshot, from its maps of shards."""
    rows = _rows(spark, checkpoint, _BROKER_OPERATOR, SNAPSHOTS)
    return {tuple(row.user_map_key): bytes(row.user_map_value.payload) for row in rows}


def cluster_snapshots(spark: SparkSession, checkpoint: str) -> dict[tuple[str, str], bytes]:
    """Operator ②: the same from its map of brokers."""
    rows = _rows(spark, checkpoint, _CLUSTER_OPERATOR, "snapshots")
    return {(r.key.cluster, r.user_map_key.broker): bytes(r.user_map_value.payload) for r in rows}


def _rows(spark: SparkSession, checkpoint: str, operator: int, variable: str) -> list[Any]:
    # The reader tells an endpoint what it loads, which only the manager of streams sets up.
    _ = spark.streams
    read = spark.read.format("statestore").option("operatorId", operator)
    return list(read.option("stateVarName", variable).load(checkpoint).collect())
