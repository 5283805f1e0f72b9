"""The Kafka source: one reader per topic, all with the same options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from sources.records import CLUSTER_PATTERN
from trimtab.wire.rows import Tag


@dataclass(frozen=True, slots=True)
class KafkaSource:
    """Where to read and how; ``options`` are the connector's, also those prefixed ``kafka.``."""

    bootstrap: str
    starting_offsets: str = "earliest"
    fetch_wait_ms: int = 10
    """Longest poll of the consumer; its default of 500 ms delays every batch."""
    max_offsets: int = 20_000
    """Most records of each topic in a batch."""
    options: Mapping[str, str] = field(default_factory=dict)

    def read(self, spark: SparkSession, topic: str) -> DataFrame:
        """A stream of the topic's records, headers included."""
        return (
            spark.readStream.format("kafka")
            .option("kafka.bootstrap.servers", self.bootstrap)
            .option("subscribe", topic)
            .option("startingOffsets", self.starting_offsets)
            .option("kafka.fetch.max.wait.ms", str(self.fetch_wait_ms))
            .option("maxOffsetsPerTrigger", str(self.max_offsets))
            .option("includeHeaders", "true")
            .option("failOnDataLoss", "true")
            .options(**self.options)
            .load()
        )

    def sample(self, spark: SparkSession, topic: str) -> None:
        """Read one record, if there is any, with the same client; raises the stream's errors."""
        (
            spark.read.format("kafka")
            .option("kafka.bootstrap.servers", self.bootstrap)
            .option("subscribe", topic)
            .options(**self.options)
            .option("startingOffsets", "earliest")
            .load()
            .select("offset")
            .take(1)
        )


def select_rows(records: DataFrame, tag: Tag) -> DataFrame:
    """Records of trimtab.control or trimtab.ownership as rows; the key's first part is the cluster.

    A record with an invalid key goes to the cluster "" and from there to the dead letters.
    """
    subject = f.coalesce(f.col("key").cast("string"), f.lit(""))
    return records.select(
        f.regexp_extract(subject, rf"^{CLUSTER_PATTERN}\z", 1).alias("cluster"),
        f.lit(tag.value).alias("tag"),
        f.concat_ws("/", "topic", "partition", "offset").alias("subject"),
        f.coalesce(f.col("value"), f.lit(b"")).alias("payload"),
        f.unix_millis("timestamp").alias("appended_ms"),
        f.lit(0).alias("accepted"),
        f.lit(0).alias("duplicate"),
        f.lit(0).alias("old"),
    )
