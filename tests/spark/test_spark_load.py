"""What the watchdog sees of Spark."""

from __future__ import annotations

from pyspark.sql import SparkSession

from streaming.watchdog import SparkLoad


def test_spark_computes_while_a_query_runs_and_not_afterwards(spark: SparkSession) -> None:
    load = SparkLoad()
    load.computing()
    spark.range(20_000_000).selectExpr("sum(sqrt(id))").collect()
    assert load.computing()
    assert not load.computing()
