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
        (b"Starting " + WORKER + b".\n", True),
        (WORKER + b" Completed execution of UDF: <bound method>.\n", True),
        (b"\n", True),
        (b"2026-01-31 12:00:00 [ERROR] Executor: Exception in task\n", False),
        (b"java.lang.OutOfMemoryError: Java heap space\n", False),
    ],
)
def test_what_says_nothing_to_an_operator(line: bytes, chatter: bool) -> None:
    assert is_chatter(line) is chatter


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
    logging.getLogger("trimtab.kafka").setLevel(logging.NOTSET)


@pytest.mark.usefixtures("logging_as_before")
@pytest.mark.parametrize(("level", "shown"), [("debug", True), ("info", False)])
def test_librdkafka_speaks_at_debug_level_only(
    level: str, shown: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    configure(level)  # type: ignore[arg-type] # one of the levels
    assert logging.getLogger("trimtab.kafka").isEnabledFor(logging.ERROR) is shown
    structlog.get_logger().debug("a detail")
    structlog.get_logger().info("a fact")
    said = capsys.readouterr().out
    assert ("a detail" in said, "a fact" in said) == (shown, True)
