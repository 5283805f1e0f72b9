"""Checks, as far as possible without Spark, that this job can continue from a checkpoint.

A job whose checkpoint is another query's, or damaged, or ahead of its topics, fails in its first
batch, and again after each restart. It must know before it claims.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol

from streaming.query.broker_operator import SNAPSHOTS
from streaming.query.folder import FolderError
from streaming.query.session import PARTITIONS
from streaming.readiness import NotReady
from trimtab.wire import keys

Ends = Mapping[str, Mapping[str, int]]
"""Topic to partition to the offset after the last one read."""

Watermarks = Mapping[tuple[str, int], tuple[int, int]]
"""Topic and partition to its first offset, and the offset that its next record gets."""

SOURCES: Final = (keys.LOAD_REPORTS, keys.CONTROL, keys.OWNERSHIP)
"""In the order of the query's sources."""

_OPERATORS: Final = 2
_OPERATOR: Final = "transformWithState"
_VARIABLES: Final = {"1": SNAPSHOTS}
"""Operator to a name of its state that other versions of it do not have. Spark numbers operators
from the query's end."""
_QUERY: Final = frozenset({"metadata", "offsets", "commits", "state"})
"""Names of Spark's files in a checkpoint. Where a query is to begin is written before it starts, so
that alone is none."""

START_OVER: Final = (
    "move it away or set another `checkpoint`: a job without one starts over, warms up and moves "
    "nothing at first"
)


class Files(Protocol):
    """A `streaming.query.folder.Folder`."""

    path: str

    def read(self, name: str) -> str: ...

    def names(self, name: str = "") -> list[str]: ...

    def try_writing(self) -> None: ...


class _Foreign(ValueError):
    """The checkpoint was not written by this job, or was changed since; says why."""


def check_writable(files: Files) -> None:
    """Raise NotReady unless a query can write its checkpoint."""
    try:
        files.try_writing()
    except FolderError as error:
        raise NotReady(
            f"the checkpoint {files.path} cannot be written: {error}; make room or grant the right "
            "to, or set another `checkpoint`"
        ) from error


def check_origin(files: Files, watermarks: Callable[[], Watermarks] | None) -> None:
    """Raise NotReady if there is a checkpoint from which this job cannot continue.

    ``watermarks``: those of its topics, requested only if there is a checkpoint; None if the
    operator lets Spark skip records that Kafka has lost.
    """
    try:
        ends = _ends(files)
        if ends and watermarks is not None:
            there = watermarks()
            for each in ends:
                _compare(each, there)
    except (_Foreign, FolderError) as error:
        raise NotReady(
            f"the checkpoint {files.path} is not one to go on from: {error}; {START_OVER}"
        ) from error


def _ends(files: Files) -> list[Ends]:
    """The offsets that Kafka must have; none for a new query. Raises _Foreign and FolderError."""
    if not _QUERY.intersection(files.names()):
        return []
    if not isinstance(_json("metadata", files.read("metadata")).get("id"), str):
        raise _Foreign("its metadata names no query")
    newest, committed = _newest(files.names("offsets")), _committed(files)
    if newest is None:
        return []
    ends, conf = _offsets(files, newest)
    _check_operators(files, conf.get(PARTITIONS))
    if committed is None or committed == newest:
        return [ends]
    # The last batch is repeated, from the end of the one before it.
    return [ends, _offsets(files, committed)[0]]


def _offsets(files: Files, number: int) -> tuple[Ends, Mapping[str, Any]]:
    """A batch's end offsets, and the session settings that Spark stored with them."""
    name = f"offsets/{number}"
    lines = files.read(name).splitlines()
    if len(lines) < 2 or not lines[0].startswith("v"):
        raise _Foreign(f"{name} is not whole")
    conf = _json(name, lines[1]).get("conf", {})
    return _sources([_json(name, line) if line != "-" else {} for line in lines[2:]]), conf


def _sources(sources: Sequence[Mapping[str, Any]]) -> Ends:
    read = [topic for source in sources for topic in source] or ["nothing"]
    fits = len(sources) == len(SOURCES) and all(
        set(source) <= {topic} for source, topic in zip(sources, SOURCES, strict=True)
    )
    if not fits:
        raise _Foreign(f"it is of a query that reads {', '.join(read)} from {len(sources)} sources")
    return {topic: ends for source in sources for topic, ends in source.items()}


def _committed(files: Files) -> int | None:
    newest = _newest(files.names("commits"))
    if newest is not None:
        name = f"commits/{newest}"
        _json(name, "".join(files.read(name).splitlines()[1:]))
    return newest


def _check_operators(files: Files, partitions: str | None) -> None:
    """Compare operators and partitions; Spark does so too, but only in the first batch."""
    operators = files.names("state")
    if not set(operators) <= {str(number) for number in range(_OPERATORS)}:
        raise _Foreign(f"its query has {len(operators)} operators with state, not {_OPERATORS}")
    for operator in operators:
        folder = f"state/{operator}/_metadata/v2"
        newest = _newest(files.names(folder))
        if newest is None:
            continue
        name = f"{folder}/{newest}"
        told = _json(name, "".join(files.read(name).splitlines()[1:]))
        kind = str(told.get("operatorInfo", {}).get("operatorName"))
        if not kind.startswith(_OPERATOR):
            raise _Foreign(f"its operator {operator} is {kind}")
        told_of = str(told.get("operatorPropertiesJson"))
        if _VARIABLES.get(operator, "") not in told_of:
            raise _Foreign(
                f"its operator {operator} has no {_VARIABLES[operator]}: another version of "
                "trimtab wrote it"
            )
        widths = {str(store.get("numPartitions")) for store in told.get("stateStoreInfo", [])}
        if partitions is not None and widths != {partitions}:
            raise _Foreign(
                f"its operator {operator} has {'/'.join(sorted(widths))} partitions, its offsets "
                f"are of {partitions}"
            )


def _compare(ends: Ends, watermarks: Watermarks) -> None:
    """Raise _Foreign unless Kafka still has the records that come next."""
    for topic, partitions in ends.items():
        for partition, end in partitions.items():
            low, high = watermarks.get((topic, int(partition)), (0, -1))
            place = f"{topic}/{partition}"
            if high < 0:
                raise _Foreign(f"there is no {place} any more, and it has read {end} records of it")
            if end > high:
                raise _Foreign(f"it has read {place} up to {end}, which ends at {high} now")
            if end < low:
                raise _Foreign(f"it has read {place} up to {end}, which begins at {low} now")


def _newest(names: Sequence[str]) -> int | None:
    return max((int(name) for name in names if name.isdecimal()), default=None)


def _json(name: str, text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise _Foreign(f"{name} cannot be read")
    return found
