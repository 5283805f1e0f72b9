"""What a stopped query remembers, read from its checkpoint by Spark itself."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, SparkSession

# Spark numbers stateful operators from the query's end.
_CLUSTER_OPERATOR, _BROKER_OPERATOR = 0, 1


def broker_snapshots(spark: SparkSession, checkpoint: str) -> dict[tuple[str, str], bytes]:
    """Operator ①: cluster and broker to the packed snapshot."""
    rows = _state(spark, checkpoint, _BROKER_OPERATOR, "snapshot")
    return {(r.key.cluster, r.key.broker): bytes(r.value.payload) for r in rows.collect()}


def cluster_snapshots(spark: SparkSession, checkpoint: str) -> dict[tuple[str, str], bytes]:
    """Operator ②: the same from its map of brokers."""
    rows: list[Any] = _state(spark, checkpoint, _CLUSTER_OPERATOR, "snapshots").collect()
    return {(r.key.cluster, r.user_map_key.broker): bytes(r.user_map_value.payload) for r in rows}


def _state(spark: SparkSession, checkpoint: str, operator: int, variable: str) -> DataFrame:
    # The reader tells an endpoint what it loads, which only the manager of streams sets up.
    _ = spark.streams
    return (
        spark.read.format("statestore")
        .option("operatorId", operator)
        .option("stateVarName", variable)
        .load(checkpoint)
    )
