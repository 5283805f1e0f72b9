"""Whatever a cluster is told, each request of an operator has one outcome."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

import msgspec
from hypothesis import given

from simulation.replay.batches import Replay
from sources.records import Record
from tests.support.recordings import AVG, Batch, recordings
from trimtab.intake.snapshot import IntakeSettings
from trimtab.state.memory import Memory
from trimtab.wire import keys
from trimtab.wire.intent import OF_THE_WATCHER, Intent, decode_intent
from trimtab.wire.intent_outcome import IntentOutcome
from trimtab.wire.rows import Row, Tag

Name = tuple[str, str]
"""Cluster and id."""


@given(recordings())
def test_each_id_has_one_outcome_or_waits_for_it(recording: list[Batch]) -> None:
    replay = Replay(IntakeSettings(), AVG)
    told: dict[Name, list[IntentOutcome]] = defaultdict(list)
    asked: dict[Name, list[Intent]] = defaultdict(list)
    for at, records in recording:
        for intent in of_operators(records):
            asked[intent.cluster, intent.id].append(intent)
        for outcome in outcomes_in(replay.run(at, records)):
            told[outcome.cluster, outcome.id].append(outcome)
    assert told.keys() == asked.keys()
    for name, outcomes in told.items():
        pending = replay.clusters[name[0]].memory.pending
        assert [each.final for each in outcomes] in ([True], [False, True], [False])
        assert (name[1] in pending) is not outcomes[-1].final
        assert {each.kind for each in outcomes} <= {each.kind for each in asked[name]}
    for state in replay.clusters.values():
        assert waiting(state.memory) <= followed(state.memory)


def of_operators(records: Iterable[Record]) -> Iterator[Intent]:
    for record in records:
        if record.topic == keys.CONTROL:
            intent = decode_intent(record.value or b"")
            if intent.kind not in OF_THE_WATCHER:
                yield intent


def outcomes_in(rows: Iterable[Row]) -> Iterator[IntentOutcome]:
    for row in rows:
        if row.tag == Tag.OUTCOME:
            yield msgspec.json.decode(row.payload, type=IntentOutcome)


def waiting(memory: Memory) -> set[str]:
    """The bundles that rounds are asked to change."""
    return {*memory.round.asked, *memory.round.asked_moves}


def followed(memory: Memory) -> set[str]:
    return {bundle for each in memory.pending.values() for bundle in each.awaited}
