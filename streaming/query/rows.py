"""The stream's row type as Spark wants it."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Row as SparkRow

from trimtab.wire.rows import Row

_NAMED: Final = SparkRow(*Row._fields)


def spark_row(row: Row) -> SparkRow:
    """The row with its columns' names, without which Spark cannot place them."""
    return _NAMED(*row)
