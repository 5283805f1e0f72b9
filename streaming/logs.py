"""What the job's log shows: its own lines, and those of Spark and librdkafka only at debug level.

Spark's JVM writes to the standard error that it inherits. Its launcher and its Python workers say
there what no setting of theirs turns off.
"""

from __future__ import annotations

import logging
import os
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Final, Literal

import structlog
import typer

LogLevel = Literal["debug", "info", "warning", "error"]

LogLevelOption = Annotated[
    LogLevel | None,
    typer.Option("--log-level", help="debug also shows what Spark and librdkafka say."),
]

_CLIENTS: Final = ("trimtab.kafka", "py4j")
"""The loggers of librdkafka and of the connection to the JVM: their caller reports what fails."""

_CHATTER: Final = re.compile(
    # The JVM ends the first of these lines only sometimes.
    rb"(\d+ compiler directives added\.?)?(\s*$|WARNING: Using incubator modules)"
    rb"|(Starting )?Streaming TransformWithStateInPandas Python worker"
    # Stack traces of the JVM and of Python. The line that names the error passes.
    rb"|\s+at |\s+\.\.\. \d+ (more|elided)"
    rb"|Traceback \(most recent call last\)|  File \"|    "
    rb"|During handling of the above exception|The above exception was the direct cause"
    # Of workers whose JVM has gone, or does not wait for them any more.
    rb"|(BrokenPipeError|ConnectionResetError): "
    rb"|FileNotFoundError: \[Errno 2\] No such file or directory$"
    rb"|pyspark.errors.exceptions.base.PySparkRuntimeError: \[CANNOT_OPEN_SOCKET\]"
    # Interrupted by a stop. Of a damaged checkpoint, the query's own failure tells it.
    rb"|.* RocksDB\$\$anon\$\d+ StateStoreProviderId.*: Failed to load "
    rb"|.* DAGScheduler: Failed to update accumulator "
)


def configure(level: LogLevel) -> None:
    """Show the job's lines from ``level`` on."""
    number = logging.getLevelNamesMapping()[level.upper()]
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(number))
    shown = number if number == logging.DEBUG else logging.CRITICAL
    for name in _CLIENTS:
        # Below, py4j would tell each call with its values.
        logging.getLogger(name).setLevel(max(shown, logging.WARNING))


def is_chatter(line: bytes) -> bool:
    """Whether a line of Spark's says nothing to an operator."""
    return _CHATTER.match(line) is not None


@contextmanager
def quieten() -> Iterator[None]:
    """Have processes started inside write their standard error without chatter, for good."""
    sys.stderr.flush()
    read, write = os.pipe()
    own = os.dup(2)
    # Ends when the last of those processes does.
    threading.Thread(target=_pass_on, args=(read, os.dup(own)), daemon=True).start()
    os.dup2(write, 2)
    try:
        yield
    finally:
        sys.stderr.flush()
        os.dup2(own, 2)
        os.close(own)
        os.close(write)


def _pass_on(read: int, write: int) -> None:
    with os.fdopen(read, "rb") as lines, os.fdopen(write, "wb", buffering=0) as out:
        for line in lines:
            if not is_chatter(line):
                out.write(line)
