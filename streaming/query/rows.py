"""The stream's row type in Spark's form."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Row as SparkRow

from trimtab.wire.rows import Row

_NAMED: Final = SparkRow(*Row._fields)


def spark_row(row: Row) -> SparkRow:
    """Return the row with its column names, which Spark needs to place the values."""
    return _NAMED(*row)
