"""A record becomes an arrival, or poison with its reason."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
import pytest

from sources.arrivals import SIZE_LIMIT, arrival_of, take_reports
from trimtab.intake.snapshot import IntakeSettings
from trimtab.wire.load_report import LocalBrokerData, Poison, PoisonReport, encode
from trimtab.wire.rows import DeadLetter

VALUE = encode(LocalBrokerData(start_timestamp=7))


@dataclass
class Record:
    size: int = len(VALUE)
    session: bytes | None = None
    sequence: bytes | None = None
    value: bytes = VALUE
    key: bytes | None = None
    partition: int = 0
    offset: int = 11
    appended_ms: int = 5


def test_without_headers_start_and_offset_order_the_reports() -> None:
    found = arrival_of(Record())
    assert (found.session, found.sequence, found.appended_ms) == (7, 11, 5)
    found = arrival_of(Record(session=b"3", sequence=b"4"))
    assert (found.session, found.sequence) == (3, 4)


def test_a_report_at_the_limit_is_taken_and_one_above_is_not() -> None:
    assert arrival_of(Record(size=SIZE_LIMIT)).sequence == 11
    with pytest.raises(PoisonReport) as error:
        arrival_of(Record(size=SIZE_LIMIT + 1))
    assert error.value.poison is Poison.SIZE


@pytest.mark.parametrize("header", [b"", b"-1", b"1.0", b"x", b"1" * 19])
def test_a_header_is_a_whole_number(header: bytes) -> None:
    with pytest.raises(PoisonReport) as error:
        arrival_of(Record(sequence=header))
    assert error.value.poison is Poison.HEADERS


def test_a_dead_letter_is_small_whatever_was_rejected() -> None:
    """It must fit where it goes: a name that is no bundle's may fill a whole report."""
    value = msgspec.json.encode({"lastStats": {"\x00" * 150_000: {}}})
    record = Record(size=len(value), value=value)
    (row,), _, _ = take_reports(("c", "a:1"), [record], b"", IntakeSettings(), 0)
    letter = msgspec.json.decode(row.payload, type=DeadLetter)
    assert letter.reason == Poison.BUNDLE
    assert len(row.payload) < 10_000
