"""Reports travel to operator ① by shard, and each stays with its own broker."""

from __future__ import annotations

from sources.arrivals import Stored, take_arrivals, take_reports
from sources.records import Record, Report, report_of
from sources.shards import parcel_up, shard_of, unpack_all
from tests.support.reports import bundle
from trimtab.intake.snapshot import IntakeSettings
from trimtab.model import parse_subject
from trimtab.wire import keys
from trimtab.wire.reports.load_report import BundleStats, LocalBrokerData, Resource, encode

SETTINGS = IntakeSettings(sample_interval=1.0)
BROKERS = [f"broker-{row}:8080" for row in range(40)]


def reports(second: int) -> list[tuple[tuple[str, str], Report]]:
    return [
        report_of(
            Record(
                keys.LOAD_REPORTS,
                0,
                100 * second + row,
                1000 * second,
                f"c/{broker}".encode(),
                said(row + second),
            )
        )
        for row, broker in enumerate(BROKERS)
    ]


def said(rate: int) -> bytes:
    stats = {bundle(row): BundleStats(msg_rate_in=float(rate), topics=row) for row in range(4)}
    cpu = Resource(20.0, 100.0)
    return encode(LocalBrokerData(cpu=cpu, last_stats=stats, bundles=list(stats)))


def test_a_broker_stays_in_its_shard() -> None:
    """State is kept by it: where this changes, so must the name of the state."""
    assert shard_of("c/broker-1:8080") == 8
    assert shard_of("other/broker-2:8080") == 4


def test_the_way_by_parcel_changes_no_byte() -> None:
    told = [*reports(1), *reports(3)]
    for packed in parcel_up(told).values():
        for name, arrivals in unpack_all([packed]).arrivals.items():
            subject = parse_subject(name)
            own = [report for at, report in told if at == subject]
            taken = take_arrivals(subject, arrivals, Stored({}, {}), SETTINGS, 0)
            assert taken == take_reports(subject, own, Stored({}, {}), SETTINGS, 0)


def test_several_parcels_of_a_shard_are_one() -> None:
    parcels = [parcel_up(reports(second)) for second in (1, 2, 3)]
    for shard in parcels[0]:
        whole = unpack_all([each[shard] for each in parcels])
        assert {len(arrivals) for arrivals in whole.arrivals.values()} == {3}


def test_a_poison_record_changes_no_other_broker_s_state() -> None:
    """Whatever shard it goes to: that of its broker, of another, or of none."""
    good = reports(1)
    poison = [
        report_of(Record(keys.LOAD_REPORTS, 0, 900 + place, 1, key, b"{"))
        for place, key in enumerate((f"c/{BROKERS[0]}".encode(), b"c/stranger:1", b"nobody", None))
    ]
    clean, spoiled = parcel_up(good), parcel_up([*poison, *good])
    letters = list[str]()
    for shard, packed in spoiled.items():
        parcel = unpack_all([packed])
        letters += [letter.cluster for letter in parcel.letters]
        known = unpack_all([clean[shard]]).arrivals if shard in clean else {}
        assert parcel.arrivals.keys() == known.keys()
        for name, arrivals in parcel.arrivals.items():
            subject = parse_subject(name)
            assert take_arrivals(subject, arrivals, Stored({}, {}), SETTINGS, 0) == take_arrivals(
                subject, known[name], Stored({}, {}), SETTINGS, 0
            )
    assert sorted(letters) == ["", "", "c", "c"]
