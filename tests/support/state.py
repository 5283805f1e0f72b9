"""What a stopped query remembers, read from its checkpoint by Spark itself."""

from __future__ import annotations

from binascii import a2b_base64
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from pyspark.sql import SparkSession

from streaming.query.broker_operator import SNAPSHOTS
from trimtab.intake.latest import join
from trimtab.model import parse_subject
from trimtab.state.packed_pages import LATEST, PackedPages

# Spark numbers stateful operators from the query's end.
_CLUSTER_OPERATOR, _BROKER_OPERATOR = 0, 1


def broker_snapshots(spark: SparkSession, checkpoint: str) -> dict[tuple[str, str], bytes]:
    """Operator ①: cluster and broker to the packed snapshot, from all shards."""
    kept = _snapshots(spark, checkpoint, _BROKER_OPERATOR, SNAPSHOTS, "shard")
    return {parse_subject(name): packed for _, name, packed in kept}


def cluster_snapshots(spark: SparkSession, checkpoint: str) -> dict[tuple[str, str], bytes]:
    """Operator ②: the same, of all clusters."""
    kept = _snapshots(spark, checkpoint, _CLUSTER_OPERATOR, "pages", "cluster")
    return {(cluster, broker): packed for cluster, broker, packed in kept}


def _snapshots(
    spark: SparkSession, checkpoint: str, operator: int, variable: str, key: str
) -> Iterator[tuple[Any, str, bytes]]:
    """The operator's key, the name and the packed snapshot of each."""
    pages = defaultdict[Any, dict[str, bytes]](dict)
    for row in _rows(spark, checkpoint, operator, variable):
        pages[row.key[key]][row.user_map_key.name] = a2b_base64(row.user_map_value.payload)
    for owner, found in pages.items():
        latest = PackedPages(found, LATEST)
        for name, packed in PackedPages(found).items():
            yield owner, name, join(packed, latest.get(name))


def _rows(spark: SparkSession, checkpoint: str, operator: int, variable: str) -> list[Any]:
    # The reader tells an endpoint what it loads, which only the manager of streams sets up.
    _ = spark.streams
    read = spark.read.format("statestore").option("operatorId", operator)
    return list(read.option("stateVarName", variable).load(checkpoint).collect())
