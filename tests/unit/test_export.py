"""When what is held of a cluster is exported, and what belongs to it."""

from __future__ import annotations

import pytest

from tests.support.clusters_by_rows import cluster, said, snapshot_row
from trimtab.cluster.export import ClusterExport, due
from trimtab.cluster.job_settings import from_record, to_record
from trimtab.cluster.operator import Cluster
from trimtab.intake.snapshot import IntakeSettings
from trimtab.settings import Settings
from trimtab.state.memory import Memory
from trimtab.wire.columns import unpack
from trimtab.wire.intent import IntentKind
from trimtab.wire.rows import Row, Tag

START = 1_800_000_000_000


def exported(rows: list[Row]) -> ClusterExport | None:
    parts = [(row.subject, row.payload) for row in rows if row.tag == Tag.STATE]
    return ClusterExport.of(parts) if parts else None


def heard(it: Cluster, second: int, broker: str = "a:1") -> list[Row]:
    """A batch with a report of a broker."""
    at = START + 1000 * second
    return it.take([snapshot_row(broker, {}, at_ms=at)], at)[0]


@pytest.mark.parametrize(
    ("interval", "last", "now", "is_due"),
    [
        pytest.param(900.0, 0, START, True, id="never yet"),
        pytest.param(900.0, START, START + 899_999, False, id="not yet"),
        pytest.param(900.0, START, START + 900_000, True, id="again"),
        pytest.param(900.0, START, START - 1, True, id="the clock was set back"),
        pytest.param(0.0, 0, START, False, id="off"),
    ],
)
def test_an_export_is_due_every_interval(
    interval: float, last: int, now: int, is_due: bool
) -> None:
    settings = Settings().changed({"replay.export_interval": interval})
    assert due(Memory(exported_ms=last), settings, now) == is_due


def test_a_batch_that_fires_a_timer_exports_what_is_held_after_it() -> None:
    it = cluster({"round.interval": 5.0, "replay.export_interval": 5.0})
    assert exported(heard(it, 0)) is not None
    before = heard(it, 5)
    assert exported(before) is None
    after, _ = it.wake(START + 5000)
    held = exported(after)
    assert held == it.held()
    assert unpack(held.memory, Memory) == it.memory
    assert it.memory.round.number == 1


def test_a_broker_that_is_out_of_sight_is_exported_until_it_is_heard_again() -> None:
    it = cluster({"round.interval": 0.0, "round.silence": 10.0, "round.forget": 20.0})
    heard(it, 0)
    packed = it.snapshots["a:1"]
    heard(it, 30, "b:1")
    assert (set(it.snapshots), dict(it.aside)) == ({"b:1"}, {"a:1": packed})
    assert it.held().aside == {"a:1": packed}
    heard(it, 31)
    assert (set(it.snapshots), dict(it.aside)) == ({"a:1", "b:1"}, {})


def test_a_broker_that_came_back_is_out_of_sight_until_it_is_heard() -> None:
    it = cluster()
    heard(it, 0)
    packed = it.snapshots["a:1"]
    it.take([said(IntentKind.BROKER_LOST, broker="a:1")], START + 1000)
    it.take([said(IntentKind.BROKER_JOINED, broker="a:1")], START + 2000)
    assert (dict(it.snapshots), dict(it.aside)) == ({}, {"a:1": packed})


def test_a_jobs_settings_are_understood_as_they_were_told() -> None:
    intake = IntakeSettings(half_life=7.5)
    defaults = Settings().changed({"avg.low_hits": 3, "replay.export_interval": 60})
    assert from_record(to_record(intake, defaults)) == (intake, defaults)
