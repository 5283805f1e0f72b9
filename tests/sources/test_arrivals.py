"""A record becomes an arrival, or poison with its reason."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
import pytest

from sources.arrivals import SIZE_LIMIT, Stored, arrival_of, take_reports
from trimtab.cluster.state import hash_state
from trimtab.intake.snapshot import IntakeSettings, Snapshot
from trimtab.state.memory import Memory
from trimtab.wire.columns import inflate, unpack
from trimtab.wire.reports.load_report import BundleStats, LocalBrokerData, encode
from trimtab.wire.reports.poison import Poison, PoisonReport
from trimtab.wire.rows import DeadLetter

VALUE = encode(LocalBrokerData(start_timestamp=7))
SETTINGS = IntakeSettings()


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
    (row,), _ = take_reports(("c", "a:1"), [record], Stored({}, {}), SETTINGS, 0)
    letter = msgspec.json.decode(row.payload, type=DeadLetter)
    assert letter.reason == Poison.BUNDLE
    assert len(row.payload) < 10_000


def test_a_snapshot_that_was_stored_without_compression_is_read_on() -> None:
    names = (f"t/ns/0x{each:02x}000000_0x{each + 1:02x}000000" for each in range(99))
    bundles = {name: BundleStats() for name in names}
    value = encode(LocalBrokerData(start_timestamp=7, last_stats=bundles))
    stored = Stored({}, {})
    take_reports(("c", "a:1"), [Record(size=len(value), value=value)], stored, SETTINGS, 0)
    small = stored.snapshots["c/a:1"]
    raw = inflate(small)
    assert len(small) < len(raw) / 4

    later = Record(size=len(value), value=value, sequence=b"12", appended_ms=100_000)
    found = []
    for before in (raw, small):
        # Versions without compression kept no latest figures beside it.
        stored = Stored({}, {"c/a:1": before})
        take_reports(("c", "a:1"), [later], stored, SETTINGS, 0)
        found.append(stored)
    assert found[0] == found[1]
    assert unpack(found[0].snapshots["c/a:1"], Snapshot).appended_ms == 100_000
    hashes = {hash_state(Memory(), b"", {"a:1": stored}) for stored in (raw, small)}
    assert len(hashes) == 1
