"""What the driver's JVM and its session were started with, as they say themselves."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession


def test_texts_are_compiled_by_the_second_compiler_and_all_else_by_the_first(
    spark: SparkSession,
) -> None:
    # A file that it cannot parse, or does not find, would have ended the JVM.
    directives = Path(_option(spark, "CompilerDirectivesFile")).read_text("utf-8")
    texts, others = directives.split("match:")[1:]
    assert ("java/lang/String*.*" in texts, "Exclude: false" in texts) == (True, True)
    assert ("*.*" in others, "Exclude: true" in others) == (True, True)


def test_messages_to_workers_and_pages_of_state_fit_half_a_region(spark: SparkSession) -> None:
    assert int(_option(spark, "G1HeapRegionSize")) == 8 << 20


def test_rows_that_are_shuffled_are_not_hashed(spark: SparkSession) -> None:
    shuffled = spark.range(10).repartition(2, "id")._jdf.queryExecution().executedPlan()
    assert len(list(shuffled.shuffleDependency().rowBasedChecksums())) == 0


def _option(spark: SparkSession, name: str) -> str:
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    kind = jvm.java.lang.Class.forName("com.sun.management.HotSpotDiagnosticMXBean")
    bean = jvm.java.lang.management.ManagementFactory.getPlatformMXBean(kind)
    return str(bean.getVMOption(name).getValue())
