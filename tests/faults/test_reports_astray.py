"""Load reports that come twice, late and out of order change nothing but the counters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from random import Random
from typing import Final, NamedTuple

import numpy as np
import pytest

from simulation.load_model import LoadModel, load_model
from simulation.replay.batches import Replay, rounds_of
from sources.records import Record
from tests.faults.job import INTAKE
from tests.faults.table import Row
from tests.faults.world import FLEET
from tests.support.jobs import QUICK
from trimtab.settings import Settings
from trimtab.wire import keys
from trimtab.wire.reports.load_report import encode
from trimtab.wire.rounds import RoundRecord

CLUSTER: Final = "astray"
BATCHES, A_BATCH = 40, 3
BATCH_MS: Final = 500
BEGIN_MS: Final = 1_800_000_000_000
SETTINGS: Final = Settings.parse({**QUICK, "round.observe_only": True})


class Sent(NamedTuple):
    """One report, by its broker's row and its number."""

    broker: int
    sequence: int
    value: bytes


@pytest.mark.fault(21, "duplicate, reordered and late reports")
@pytest.mark.parametrize("late", [0.0, 0.2], ids=["in their batch", "batches late"])
def test_reports_astray(row: Row, rng: Random, seed: int, late: float) -> None:
    batches = astray(rng, sent(seed), late)
    disturbed, clean = Replay(INTAKE, SETTINGS), Replay(INTAKE, SETTINGS)
    differ = moves = 0
    for number, (fuzzed, orderly) in enumerate(zip(batches, in_order(batches), strict=True)):
        at = BEGIN_MS + number * BATCH_MS
        theirs, ours = decided(disturbed, at, fuzzed), decided(clean, at, orderly)
        moves += sum(len(record.moves) for record in ours.values())
        differ += theirs != ours or disturbed.stored != clean.stored
    same = disturbed.fingerprint(CLUSTER) == clean.fingerprint(CLUSTER)
    row.note("reports", sum(map(len, batches)))
    row.note("of which count", sum(map(len, in_order(batches))))
    row.note("divergence", differ + (not same))
    # If nothing is decided, nothing can differ.
    assert moves
    row.holds("I6", ["state or decisions differ"] * (differ + (not same)))


def sent(seed: int) -> list[list[Sent]]:
    """The brokers' reports, batch by batch, in order."""
    model, rng = load_model(FLEET), np.random.default_rng(seed)
    return [
        [
            Sent(broker, number * A_BATCH + i, value(model, broker, number, rng))
            for i in range(A_BATCH)
            for broker in range(FLEET.brokers)
        ]
        for number in range(BATCHES)
    ]


def value(model: LoadModel, broker: int, number: int, rng: np.random.Generator) -> bytes:
    at, held = BEGIN_MS + number * BATCH_MS, model.owned_at_start(broker)
    report = model.report(model.brokers[broker], held, at, rng)
    report.start_timestamp = BEGIN_MS
    # A swing of a few seconds: a report that is lost or counted twice would show in the averages.
    report.cpu.usage *= 1.3 if number // 8 % 2 == broker % 2 else 0.7
    return encode(report)


def astray(rng: Random, batches: list[list[Sent]], late: float) -> list[list[Sent]]:
    """The same with some reports twice (in their own batch and in later ones), some late, and each
    batch shuffled."""
    out: list[list[Sent]] = [[] for _ in batches]
    for number, batch in enumerate(batches):
        for report in batch:
            delay = rng.randrange(1, 5) if rng.random() < late else 0
            places = [number + delay]
            while rng.random() < 0.3:
                places.append(number + delay + rng.choice((0, 0, 1, 4)))
            for place in places:
                out[min(place, len(out) - 1)].append(report)
    for batch in out:
        rng.shuffle(batch)
    return out


def in_order(batches: Iterable[list[Sent]]) -> Iterator[list[Sent]]:
    """The same without the reports that are not new when they come."""
    newest: dict[int, int] = {}
    for batch in batches:
        kept = []
        for report in sorted(set(batch), key=lambda report: report.sequence):
            if report.sequence > newest.get(report.broker, -1):
                newest[report.broker] = report.sequence
                kept.append(report)
        yield kept


def decided(replay: Replay, at: int, batch: Iterable[Sent]) -> dict[str, RoundRecord]:
    """The rounds of a batch; its records were appended at one time, as those of one request are."""
    names = load_model(FLEET).brokers
    records = [
        Record(
            topic=keys.LOAD_REPORTS,
            partition=0,
            offset=offset,
            at=at,
            key=f"{CLUSTER}/{names[report.broker]}".encode(),
            value=report.value,
            headers=(
                (keys.SESSION_HEADER, b"1"),
                (keys.SEQUENCE_HEADER, b"%d" % report.sequence),
            ),
        )
        for offset, report in enumerate(batch)
    ]
    return rounds_of(replay.run(at, records))
