"""A replay from any export is the replay from the start, whatever came before it."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from simulation.replay.batches import Replay
from tests.support.examples import examples
from tests.support.recordings import Batch, jobs, recordings
from tests.support.stored import joined
from trimtab.cluster.export import ClusterExport
from trimtab.intake.expiry import FORGET_MS, is_forgotten
from trimtab.intake.latest import join
from trimtab.intake.snapshot import IntakeSettings
from trimtab.settings import Settings
from trimtab.wire.rows import Row, Tag

INTAKE = IntakeSettings(sample_interval=1.0)
MOST = 3
"""Replays beside the one from the start."""


def exported(rows: list[Row]) -> dict[str, ClusterExport]:
    """What a batch's rows tell of each cluster."""
    parts: dict[str, list[tuple[str, bytes]]] = defaultdict(list)
    for row in rows:
        if row.tag == Tag.STATE:
            parts[row.cluster].append((row.subject, row.payload))
    return {cluster: ClusterExport.of(told) for cluster, told in parts.items()}


def of(cluster: str, rows: list[Row]) -> list[Row]:
    return [row for row in rows if row.cluster == cluster]


@examples(30)
@given(recordings(), jobs, st.integers(0, 5))
def test_a_replay_from_an_export_goes_on_as_the_one_from_the_start(
    batches: list[Batch], job: Settings, skipped: int
) -> None:
    """And what is exported is all that is held after the batch."""
    whole = Replay(INTAKE, job)
    followers: list[tuple[str, Replay]] = []
    for at, records in batches:
        rows = whole.run(at, records)
        for cluster, replay in followers:
            assert replay.run(at, records) == of(cluster, rows)
            assert replay.fingerprint(cluster) == whole.fingerprint(cluster)
        assert_snapshots_are_held_once(whole)
        for cluster, held in exported(rows).items():
            assert held == whole.clusters[cluster].held()
            skipped -= 1
            if skipped < 0 and len(followers) < MOST:
                replay = Replay(INTAKE, job)
                replay.restore(cluster, held)
                followers.append((cluster, replay))
    for cluster, replay in followers:
        assert replay.clusters[cluster].held() == whole.clusters[cluster].held()


def assert_snapshots_are_held_once(replay: Replay) -> None:
    for cluster in replay.clusters:
        known = replay.clusters[cluster].held()
        seen = {b: join(p, known.latest.get(b)) for b, p in known.snapshots.items()}
        assert {**seen, **known.aside} == {
            broker: packed for (c, broker), packed in joined(replay.stored).items() if c == cluster
        }
        assert not known.snapshots.keys() & known.aside.keys()


@examples(25)
@given(recordings(), jobs, st.data())
def test_what_is_forgotten_may_be_deleted_at_any_time(
    batches: list[Batch], job: Settings, data: st.DataObject
) -> None:
    """Operator ① deletes it when a timer fires, of which a replay knows nothing: no difference."""
    replay, swept, past_ms = Replay(INTAKE, job), Replay(INTAKE, job), 0
    for at, records in batches:
        past_ms += data.draw(st.sampled_from([0, 0, FORGET_MS // 2, FORGET_MS, 3 * FORGET_MS]))
        late_ms = data.draw(st.sampled_from([0, 0, 0, FORGET_MS])) if past_ms >= FORGET_MS else 0
        moved = [replace(record, at=record.at + past_ms - late_ms) for record in records]
        assert replay.run(at + past_ms, moved) == swept.run(at + past_ms, moved)
        for name, packed in list(swept.stored.latest.items()):
            if is_forgotten(packed, at + past_ms) and data.draw(st.booleans()):
                del swept.stored.latest[name], swept.stored.snapshots[name]
    for name in replay.clusters:
        assert replay.fingerprint(name) == swept.fingerprint(name)
