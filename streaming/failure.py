"""What an operator must read of the pages that Spark prints about a failed query."""

from __future__ import annotations

from enum import Enum, auto
from typing import Final, NamedTuple

_LONGEST: Final = 2000
_PLAN: Final = "=== Streaming Query ==="
_FRAMES: Final = ("\tat ", "\t... ")


class FatalCause(Enum):
    """Why a query would fail again, however often it is started."""

    VERSION = auto()
    """Another version of the job wrote the checkpoint."""
    CHECKPOINT = auto()
    """Spark cannot read it: another query's, or damaged."""


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
"""Words of Spark, Hadoop and RocksDB."""


class Failure(NamedTuple):
    """Of a query."""

    cause: str
    """A line."""
    trouble: FatalCause | None
    """None if another attempt may help."""


class BatchFailed(Exception):
    """What Spark is told of a call of its own that failed within a batch.

    Where the query is being stopped, Spark looks in this for the interruption that it expects, by a
    pattern that takes a frame of its stack for every character: a JVM's account of its own frames
    is longer than any stack.
    """


def drop_frames(error: str) -> str:
    """A JVM's account of an exception and its causes, less where they were thrown."""
    return "\n".join(line for line in error.splitlines() if not line.startswith(_FRAMES))


def failure_of(error: str) -> Failure:
    """What is to be made of all that Spark says."""
    known = (trouble for sign, trouble in _SIGNS.items() if sign in error)
    return Failure(cause_of(error), next(known, None))


def cause_of(error: str) -> str:
    """The innermost exception's line; everything else is in Spark's own log."""
    # Frames and Spark's own continuation lines are indented; exceptions stand at the margin.
    said = [line for line in error.partition(_PLAN)[0].splitlines() if line.strip() == line != ""]
    return (said[-1] if said else error).removeprefix("Caused by: ")[:_LONGEST]
