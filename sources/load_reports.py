"""trimtab.load-reports: what the JVM reads of a record, and how one becomes an arrival or a dead letter."""

from __future__ import annotations

from typing import Final, Protocol

import msgspec
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from trimtab.model import SUBJECT_PATTERN
from trimtab.snapshot import Arrival
from trimtab.wire import keys, load_report
from trimtab.wire.load_report import Poison, PoisonReport
from trimtab.wire.rows import HEAD, DeadLetter, Row, Tag, head_of

SIZE_LIMIT: Final = 1 << 20
"""Bytes of a report; only the first HEAD bytes of a larger one cross to Python."""


class ReportRow(Protocol):
    """The columns of `select_reports`, as Spark hands them to operator ①."""

    value: bytearray
    size: int
    key: bytearray | None
    session: str | None
    sequence: str | None
    partition: int
    offset: int
    appended_ms: int


def select_reports(records: DataFrame) -> DataFrame:
    """Report rows with their grouping key; one of a bad key has ``cluster`` and ``broker`` empty.

    ``records`` is a Kafka source read with ``includeHeaders``.
    """
    subject = f.coalesce(f.col("key").cast("string"), f.lit(""))
    pattern = f.lit(f"^{SUBJECT_PATTERN}$")
    size = f.coalesce(f.length("value"), f.lit(0))
    value = f.when(size <= SIZE_LIMIT, f.col("value")).otherwise(f.substring("value", 1, HEAD))
    return records.select(
        f.regexp_extract(subject, f"^{SUBJECT_PATTERN}$", 1).alias("cluster"),
        f.regexp_extract(subject, f"^{SUBJECT_PATTERN}$", 2).alias("broker"),
        f.coalesce(value, f.lit(b"")).alias("value"),
        size.alias("size"),
        f.when(~f.regexp(subject, pattern), f.col("key")).alias("key"),
        _header(keys.SESSION_HEADER).alias("session"),
        _header(keys.SEQUENCE_HEADER).alias("sequence"),
        "partition",
        "offset",
        f.unix_millis("timestamp").alias("appended_ms"),
    )


def _header(name: str) -> Column:
    values = f.filter("headers", lambda header: header.key == f.lit(name))
    return f.try_element_at(values, f.lit(-1)).getField("value").cast("string")


def arrival_of(row: ReportRow) -> Arrival:
    """The checked report of a row; raises PoisonReport.

    Without headers the broker's start orders its sessions and the Kafka offset its reports.
    """
    if row.size > SIZE_LIMIT:
        raise PoisonReport(Poison.SIZE, f"{row.size} bytes, the limit is {SIZE_LIMIT}")
    session, sequence = _whole(row.session), _whole(row.sequence)
    report = load_report.decode(bytes(row.value))
    return Arrival(
        appended_ms=row.appended_ms,
        session=report.start_ms if session is None else session,
        sequence=row.offset if sequence is None else sequence,
        report=report,
    )


def _whole(header: str | None) -> int | None:
    if header is None:
        return None
    if not (header.isascii() and header.isdecimal() and len(header) <= 18):
        raise PoisonReport(Poison.HEADERS, f"{header[:40]!r} is not a whole number")
    return int(header)


def dead_letter(subject: tuple[str, str], row: ReportRow, error: PoisonReport) -> Row:
    """The row that tells the sinks what was rejected, where it stands and why."""
    letter = DeadLetter(
        reason=error.poison,
        detail=str(error),
        topic=keys.LOAD_REPORTS,
        partition=row.partition,
        offset=row.offset,
        key=bytes(row.key).decode(errors="replace")[:HEAD] if row.key else "/".join(subject),
        size=row.size,
        head=head_of(bytes(row.value)),
    )
    where = f"{row.partition}/{row.offset}"
    return Row(subject[0], Tag.DEAD_LETTER, where, msgspec.json.encode(letter), row.appended_ms)
