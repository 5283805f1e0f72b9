"""The job's log is the job's: Spark's chatter is left out, everything else passes."""

from __future__ import annotations

import logging
import subprocess
import sys

import pytest
import structlog

from streaming.logs import configure, is_chatter

WORKER = b"Streaming TransformWithStateInPandas Python worker"


@pytest.mark.parametrize(
    ("line", "chatter"),
    [
        (b"WARNING: Using incubator modules: jdk.incubator.vector\n", True),
        (b"2 compiler directives added.\n", True),
        (b"2 compiler directives addedWARNING: Using incubator modules: a\n", True),
        (b"2 compiler directives addedError: no space left\n", False),
        (b"Starting " + WORKER + b".\n", True),
        (WORKER + b" Completed execution of UDF: <bound method>.\n", True),
        (b"\n", True),
        (b"2026-01-31 12:00:00 [ERROR] Executor: Exception in task\n", False),
        (
            b"2026-01-31 12:00:00 [ERROR] RocksDB$$anon$1 StateStoreProviderId[ storeId=x ], "
            b"queryRunId=y ]: Failed to load snapshot version 81, attempt 1 out of 1 attempts\n",
            True,
        ),
        (b"2026-01-31 12:00:00 [ERROR] DAGScheduler: Failed to update accumulator 0 for 1\n", True),
        (b"java.lang.OutOfMemoryError: Java heap space\n", False),
    ],
)
def test_what_says_nothing_to_an_operator(line: bytes, chatter: bool) -> None:
    assert is_chatter(line) is chatter


CANCELLED = b"""\
Traceback (most recent call last):
  File "pyspark/daemon.py", line 262, in manager
    code = worker(sock, authenticated)
           ^^^^^^^^^^^^^^^^^^^^^^^^^^^
BrokenPipeError: [Errno 32] Broken pipe

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "pyspark/worker_util.py", line 211, in get_sock_file_to_executor
FileNotFoundError: [Errno 2] No such file or directory
pyspark.errors.exceptions.base.PySparkRuntimeError: [CANNOT_OPEN_SOCKET] Can not open socket: tried
FileNotFoundError: [Errno 2] No such file or directory: '/srv/policies.json'
ModuleNotFoundError: No module named 'pyarrow'
Exception in thread "stream execution thread" org.apache.spark.SparkException: awaitResult:
\tat org.apache.spark.util.SparkThreadUtils$.awaitResult(SparkThreadUtils.scala:70)
\t... 12 more
Caused by: org.apache.spark.SparkException: Could not find StateStoreCoordinator.
"""


def test_of_a_stack_trace_only_the_errors_are_left_except_that_a_peer_has_gone() -> None:
    assert [line for line in CANCELLED.splitlines() if not is_chatter(line)] == [
        b"FileNotFoundError: [Errno 2] No such file or directory: '/srv/policies.json'",
        b"ModuleNotFoundError: No module named 'pyarrow'",
        b'Exception in thread "stream execution thread" org.apache.spark.SparkException: '
        b"awaitResult:",
        b"Caused by: org.apache.spark.SparkException: Could not find StateStoreCoordinator.",
    ]


def test_a_child_started_quietly_writes_without_chatter_and_the_parent_as_before() -> None:
    program = """
import subprocess, sys
from streaming.logs import quieten
with quieten():
    child = subprocess.Popen(["sh", "-c", "read go; echo WARNING: Using incubator modules >&2; "
                              "echo an error >&2"], stdin=subprocess.PIPE)
print("WARNING: Using incubator modules of mine", file=sys.stderr, flush=True)
child.communicate(b"go")
import threading
for each in threading.enumerate():
    if each is not threading.main_thread():
        each.join()
"""
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert ended.stderr.splitlines() == ["WARNING: Using incubator modules of mine", "an error"]


@pytest.fixture
def logging_as_before() -> object:
    yield None
    structlog.reset_defaults()
    for name in ("trimtab.kafka", "py4j"):
        logging.getLogger(name).setLevel(logging.NOTSET)


@pytest.mark.usefixtures("logging_as_before")
@pytest.mark.parametrize(("level", "shown"), [("debug", True), ("info", False)])
def test_clients_speak_at_debug_level_only(
    level: str, shown: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    configure(level)  # type: ignore[arg-type] # one of the levels
    for name in ("trimtab.kafka", "py4j.clientserver"):
        assert logging.getLogger(name).isEnabledFor(logging.ERROR) is shown
        assert not logging.getLogger(name).isEnabledFor(logging.DEBUG)
    structlog.get_logger().debug("a detail")
    structlog.get_logger().info("a fact")
    said = capsys.readouterr().out
    assert ("a detail" in said, "a fact" in said) == (shown, True)
