"""Extracts what an operator needs from the pages that Spark prints about a failed query."""

from __future__ import annotations

import re
from enum import Enum, auto
from typing import Final, NamedTuple

_LONGEST: Final = 2000
_PLAN: Final = "=== Streaming Query ==="
_FRAMES: Final = ("\tat ", "\t... ")
_WRAPPING: Final = re.compile(
    r"^Caused by: |^\[STREAM_FAILED\] Query .*? terminated with exception: "
)
_WORKER_LATE: Final = "Python worker failed to connect back"
_BUSY: Final = ": Spark gives one 10 s; the machine is too busy, or the worker's error stands above"


class FatalCause(Enum):
    """Why a query would fail again at every restart."""

    VERSION = auto()
    """Another version of the job wrote the checkpoint."""
    CHECKPOINT = auto()
    """Spark cannot read the checkpoint: it is another query's, or damaged."""


_SIGNS: Final = {
    "ForeignCheckpoint": FatalCause.VERSION,
    "ChecksumException": FatalCause.CHECKPOINT,
    "Corruption:": FatalCause.CHECKPOINT,
    "Incomplete log file": FatalCause.CHECKPOINT,
    "in the checkpoint offsets": FatalCause.CHECKPOINT,
    "CHECKSUM_VERIFICATION_FAILED": FatalCause.CHECKPOINT,
    "INVALID_CONFIG_AFTER_RESTART": FatalCause.CHECKPOINT,
    "SCHEMA_NOT_COMPATIBLE": FatalCause.CHECKPOINT,
    "STREAMING_CHECKPOINT_MISSING_METADATA_FILE": FatalCause.CHECKPOINT,
    "STREAMING_STATEFUL_OPERATOR": FatalCause.CHECKPOINT,
}
"""Error texts of Spark, Hadoop and RocksDB."""


class Failure(NamedTuple):
    """A query's failure."""

    cause: str
    """One line."""
    trouble: FatalCause | None
    """None if another attempt may help."""


class BatchFailed(Exception):
    """Raised to Spark when one of its own calls failed within a batch.

    While a query is being stopped, Spark searches this error for the interruption that it expects,
    with a pattern that uses a stack frame for every character: a full JVM stack trace overflows any
    stack.
    """


def after_vain_attempts(attempts: int, cause: str, otherwise: str) -> str:
    """Why a query that never did a batch is given up; ``otherwise``: the advice if the cause has
    none."""
    advice = "give it more of a processor" if _WORKER_LATE in cause else otherwise
    return f"no batch was done in {attempts} attempts ({cause}); {advice}"


def drop_frames(error: str) -> str:
    """Remove the stack frames from a JVM's text about an exception and its causes."""
    return "\n".join(line for line in error.splitlines() if not line.startswith(_FRAMES))


def failure_of(error: str) -> Failure:
    """Interpret Spark's whole error text."""
    known = (trouble for sign, trouble in _SIGNS.items() if sign in error)
    return Failure(cause_of(error), next(known, None))


def cause_of(error: str) -> str:
    """Return the innermost exception's line; everything else is in Spark's own log."""
    # Frames and Spark's own continuation lines are indented; exceptions are not.
    said = [line for line in error.partition(_PLAN)[0].splitlines() if line.strip() == line != ""]
    cause = _WRAPPING.sub("", said[-1] if said else error)[:_LONGEST]
    return cause.replace(_WORKER_LATE, _WORKER_LATE + _BUSY)
