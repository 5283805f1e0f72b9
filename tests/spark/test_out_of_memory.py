"""A JVM without memory ends the job at once, with a message that names the setting. Nothing waits
for a thread of it that has died."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from streaming.config import SparkConfig
from streaming.query.session import jvm_end, spark_session
from tests.support.class_archive import quick_options


def fill_the_heap() -> None:
    """Allocate on the JVM's heap until it ends, as the job's driver would see it."""
    conf = {"spark.driver.extraJavaOptions": quick_options()}
    spark = spark_session(SparkConfig(master="local[1]", driver_memory="600m", conf=conf))
    jvm: Any = spark.sparkContext._jvm
    kept, allocate = jvm.java.util.ArrayList(), jvm.java.nio.ByteBuffer.allocate
    try:
        while True:
            kept.add(allocate(64 << 20))
    except Exception as error:
        print(jvm_end(error))


@pytest.mark.spark
@pytest.mark.slow
def test_a_jvm_without_memory_ends_and_the_reason_names_the_setting() -> None:
    program = "from tests.spark.test_out_of_memory import fill_the_heap; fill_the_heap()"
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=False
    )
    assert "Spark's JVM ran out of memory: set `size`" in ended.stdout, ended.stderr[-2000:]
