"""Whether Spark reads from Kafka is known before the job claims."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from deploy.ports import free_port
from streaming.config import JobConfig, KafkaConfig
from streaming.query.spark_checks import check_connector
from streaming.readiness import NotReady


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"assign": "{}"}, id="two ways to name a topic"),
        pytest.param({"kafka.security.protocol": "nonsense"}, id="no such protocol"),
    ],
)
def test_options_that_the_connector_refuses_are_told_with_where_to_look(
    spark: SparkSession, options: dict[str, str]
) -> None:
    bootstrap = f"127.0.0.1:{free_port()}"
    config = JobConfig(kafka=KafkaConfig(bootstrap=bootstrap, options=options))
    with pytest.raises(NotReady, match=f"from Kafka at {bootstrap}: .*; look at"):
        check_connector(spark, config)


def test_a_jvm_that_has_gone_leaves_no_stack_trace_of_its_accumulators(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    server = spark.sparkContext._accumulatorServer
    assert server is not None
    try:
        raise ConnectionResetError
    except ConnectionResetError:
        server.handle_error(None, None)  # type: ignore[arg-type] # as socketserver calls it
    assert capsys.readouterr().err == ""
