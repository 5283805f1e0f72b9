"""What keeps Spark from starting is told in a line, with what to do."""

from __future__ import annotations

from contextlib import ExitStack

import pytest
from py4j.protocol import Py4JNetworkError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from streaming.config import SparkConfig
from streaming.query import spark_checks
from streaming.query.spark_checks import start_spark
from streaming.readiness import NotReady


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(FileNotFoundError("no java"), id="not installed"),
        pytest.param(PySparkException("Java gateway process exited: no java"), id="exits"),
        pytest.param(Py4JNetworkError("no java"), id="dies"),
    ],
)
def test_a_spark_that_does_not_start_is_told_with_what_to_do(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fail(*_: object, **__: object) -> SparkSession:
        raise error

    monkeypatch.setattr(spark_checks, "spark_session", fail)
    told = r"^Spark does not start: .*no java; trimtab doctor says "
    with ExitStack() as kept, pytest.raises(NotReady, match=told):
        start_spark(SparkConfig(), kept)
