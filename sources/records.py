"""Kafka records as the operators get them, for the job's source of reports and for replays."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from sources.arrivals import NO_SUBJECT, SIZE_LIMIT
from trimtab.model import SUBJECT_PATTERN, InvalidName, parse_subject
from trimtab.wire import keys
from trimtab.wire.rows import HEAD, Row, Tag

CLUSTER_PATTERN: Final = f"{SUBJECT_PATTERN.split('/')[0]}(/[^\\n]*)?"
"""Key of an intent or an ownership record: the cluster, optionally a slash and more."""

_CLUSTER: Final = re.compile(CLUSTER_PATTERN)


@dataclass(frozen=True, slots=True)
class Record:
    """One record of a topic; ``at`` is its LogAppendTime (epoch ms)."""

    topic: str
    partition: int
    offset: int
    at: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


@dataclass(frozen=True, slots=True)
class Report:
    """Implements `sources.arrivals.ReportRow`."""

    value: bytes
    size: int
    key: bytes | None
    session: bytes | None
    sequence: bytes | None
    partition: int
    offset: int
    appended_ms: int


def report_of(record: Record) -> tuple[tuple[str, str], Report]:
    """The record's cluster and broker, `NO_SUBJECT` if its key is invalid, and its row."""
    value = record.value or b""
    subject = _subject(record.key)
    row = Report(
        value=value if len(value) <= SIZE_LIMIT else value[:HEAD],
        size=len(value),
        key=record.key if subject == NO_SUBJECT else None,
        session=_header(record.headers, keys.SESSION_HEADER),
        sequence=_header(record.headers, keys.SEQUENCE_HEADER),
        partition=record.partition,
        offset=record.offset,
        appended_ms=record.at,
    )
    return subject, row


def row_of(record: Record, tag: Tag) -> Row:
    """Like `sources.topics.select_rows`."""
    match = _CLUSTER.fullmatch(_text(record.key))
    where = f"{record.topic}/{record.partition}/{record.offset}"
    return Row(match[1] if match else "", tag, where, record.value or b"", record.at)


def _subject(key: bytes | None) -> tuple[str, str]:
    try:
        return parse_subject(_text(key))
    except InvalidName:
        return NO_SUBJECT


def _text(key: bytes | None) -> str:
    return (key or b"").decode(errors="replace")


def _header(headers: Iterable[tuple[str, bytes | None]], name: str) -> bytes | None:
    values = [value for key, value in headers if key == name]
    return values[-1] if values else None
