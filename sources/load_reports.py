"""Reads trimtab.load-reports with Spark: a record's columns and its grouping key."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from sources.arrivals import SIZE_LIMIT
from trimtab.model import SUBJECT_PATTERN
from trimtab.wire import keys
from trimtab.wire.rows import HEAD


def select_reports(records: DataFrame) -> DataFrame:
    """Report rows with their grouping key; a bad key gives empty ``cluster`` and ``broker``.

    ``records`` is a Kafka source read with ``includeHeaders``.
    """
    subject = f.coalesce(f.col("key").cast("string"), f.lit(""))
    # Not "$": in Java that also matches before a last line feed, and "a/b\n" is not broker a/b.
    pattern = rf"^{SUBJECT_PATTERN}\z"
    size = f.coalesce(f.length("value"), f.lit(0))
    value = f.when(size <= SIZE_LIMIT, f.col("value")).otherwise(f.substring("value", 1, HEAD))
    return records.select(
        f.regexp_extract(subject, pattern, 1).alias("cluster"),
        f.regexp_extract(subject, pattern, 2).alias("broker"),
        f.coalesce(value, f.lit(b"")).alias("value"),
        size.alias("size"),
        f.when(~f.regexp(subject, f.lit(pattern)), f.col("key")).alias("key"),
        _header(keys.SESSION_HEADER).alias("session"),
        _header(keys.SEQUENCE_HEADER).alias("sequence"),
        "partition",
        "offset",
        f.unix_millis("timestamp").alias("appended_ms"),
    )


def _header(name: str) -> Column:
    # Bytes, not a string: invalid UTF-8 would fail the whole batch on its way to Python.
    values = f.filter("headers", lambda header: header.key == f.lit(name))
    return f.try_element_at(values, f.lit(-1)).getField("value")
