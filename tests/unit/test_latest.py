"""Operator ② on a broker's latest figures, whose snapshot it has, or had."""

from __future__ import annotations

from dataclasses import replace

import pytest

from simulation.replay.batches import Replay
from tests.support.clusters_by_rows import cluster, held, said, snapshot_row
from tests.support.reports import bundle, snapshot
from trimtab.cluster.operator import Cluster
from trimtab.intake.latest import Latest, join, latest_of, with_latest
from trimtab.intake.snapshot import IntakeSettings
from trimtab.shedding import DEFAULTS
from trimtab.wire.columns import pack, pack_small, unpack
from trimtab.wire.intent import IntentKind
from trimtab.wire.rows import Row, Tag

ONE = bundle(0)
START = 1_800_000_000_000


def latest_row(broker: str, cpu: float, at_ms: int) -> Row:
    """A report of a broker that still has ONE alone."""
    payload = pack(latest_of(snapshot(broker, {ONE: 1.0}, cpu)))
    return Row("c", Tag.LATEST, broker, payload, at_ms, accepted=1)


def heard(it: Cluster, row: Row) -> None:
    it.take([row], row.appended_ms)


def whole(broker: str, cpu: float) -> bytes:
    """What ② should hold of it, in one value."""
    first = snapshot(broker, {ONE: 1.0})
    return pack_small(with_latest(first, latest_of(snapshot(broker, {ONE: 1.0}, cpu))))


def test_a_round_sees_the_latest_figures_of_a_broker() -> None:
    it = cluster()
    heard(it, snapshot_row("a:1", {ONE: 1.0}, cpu=20.0, at_ms=START))
    before = it.snapshots["a:1"]
    heard(it, latest_row("a:1", 80.0, START + 10_000))
    assert it.snapshots["a:1"] is before
    assert held(it, START + 11_000).usage == {"a:1": pytest.approx(0.8)}
    assert it.memory.appended == {"a:1": START + 10_000}


def test_the_hash_of_a_round_covers_them() -> None:
    hashes = set()
    for version in ("4.0.8", "4.0.9"):
        it = cluster()
        heard(it, snapshot_row("a:1", {ONE: 1.0}, at_ms=START))
        row = latest_row("a:1", 80.0, START + 10_000)
        latest = replace(unpack(row.payload, Latest), version=version)
        heard(it, row._replace(payload=pack(latest)))
        hashes.add(held(it, START + 11_000).state_hash)
    assert len(hashes) == 2


def test_a_newer_snapshot_ends_them() -> None:
    it = cluster()
    for row in (
        snapshot_row("a:1", {ONE: 1.0}, cpu=20.0, at_ms=START),
        latest_row("a:1", 80.0, START + 10_000),
        snapshot_row("a:1", {ONE: 1.0}, cpu=40.0, at_ms=START + 20_000),
    ):
        heard(it, row)
    assert dict(it.latest) == {}
    assert held(it, START + 21_000).usage == {"a:1": pytest.approx(0.4)}


def test_what_is_set_aside_has_them_and_is_seen_again_with_the_next_report() -> None:
    """① goes on from its own snapshot, and sends no other where its bundles are as they were."""
    it = cluster()
    heard(it, snapshot_row("a:1", {ONE: 1.0}, at_ms=START))
    heard(it, latest_row("a:1", 80.0, START + 10_000))
    it.take([said(IntentKind.BROKER_LOST, broker="a:1")], START + 11_000)
    it.take([said(IntentKind.BROKER_JOINED, broker="a:1")], START + 12_000)
    assert (dict(it.snapshots), dict(it.latest)) == ({}, {})
    assert dict(it.aside) == {"a:1": whole("a:1", 80.0)}

    heard(it, latest_row("a:1", 30.0, START + 20_000))
    assert dict(it.aside) == {}
    assert join(it.snapshots["a:1"], it.latest["a:1"]) == whole("a:1", 30.0)
    assert held(it, START + 21_000).usage == {"a:1": pytest.approx(0.3)}


def test_a_broker_that_is_not_known_is_seen_with_its_next_snapshot() -> None:
    """A clock that was set back: ② had forgotten what ① still goes on from."""
    it = cluster()
    heard(it, latest_row("a:1", 80.0, START))
    assert held(it, START + 1000).usage == {}
    heard(it, snapshot_row("a:1", {ONE: 1.0}, cpu=40.0, at_ms=START + 10_000))
    assert held(it, START + 11_000).usage == {"a:1": pytest.approx(0.4)}


def test_they_are_exported_beside_the_snapshot_and_a_replay_goes_on_from_both() -> None:
    it = cluster()
    heard(it, snapshot_row("a:1", {ONE: 1.0}, at_ms=START))
    heard(it, latest_row("a:1", 80.0, START + 10_000))
    replay = Replay(IntakeSettings(), DEFAULTS)
    replay.restore("c", it.held())
    assert replay.stored.latest == {"c/a:1": it.latest["a:1"]}
    assert replay.stored.snapshots == {"c/a:1": it.snapshots["a:1"]}
    assert replay.clusters["c"].held() == it.held()
