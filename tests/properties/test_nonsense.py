"""One broker's nonsense never changes what is decided.

What holds, to the last bit of state: a report that is not believed is as one that was not sent. So
the broker is what it was said to be in its last report that was believed, until it counts as silent
and is left out; and nothing in such a report has any part in a decision, about it or about others.
"""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from simulation.replay.batches import Replay, rounds_of
from sources.records import Record
from tests.support.examples import examples
from tests.support.nonsense import (
    BROKERS,
    BUNDLES,
    START_MS,
    STEP_MS,
    Fleet,
    fleets,
    job_of,
    jobs,
    nonsense,
)
from trimtab.intake.snapshot import IntakeSettings
from trimtab.settings import Settings
from trimtab.wire import keys
from trimtab.wire.rounds import RoundRecord
from trimtab.wire.rows import DeadLetter, Row, Tag

INTAKE = IntakeSettings(sample_interval=1.0)
STEPS = 7
SILENCE = 9
"""Steps that are allowed a broker after its first report: three minutes."""
LONGER = SILENCE + 3
"""Steps after which a broker is left out."""

LIAR = BROKERS[0]


class World:
    """A job that reads a fleet's reports, a batch a step."""

    def __init__(self, fleet: Fleet, job: Settings) -> None:
        self.fleet, self.replay = fleet, Replay(INTAKE, job)
        self.rounds: list[RoundRecord] = []
        self.letters: list[DeadLetter] = []
        self.state: list[str] = []

    def step(self, number: int, said: bytes | None, *, honest: bool = True) -> None:
        """All report; the liar, where it is not honest, what it ``said`` or nothing."""
        at = START_MS + number * STEP_MS
        records = self.fleet.changes() if number == 0 else []
        for offset, broker in enumerate(sorted(self.fleet.cpu[number])):
            value: bytes | None = self.fleet.report(number, broker)
            if broker == LIAR and not honest:
                value = said
            if value is not None:
                place = 100 * number + offset
                key = f"c/{broker}".encode()
                records.append(Record(keys.LOAD_REPORTS, 0, place, at, key, value))
        rows = self.replay.run(at, records)
        self.rounds += rounds_of(rows).values()
        self.letters += letters_in(rows)
        self.state.append(self.replay.fingerprint("c"))


def letters_in(rows: list[Row]) -> list[DeadLetter]:
    found = [row for row in rows if row.tag == Tag.DEAD_LETTER]
    return [msgspec.json.decode(row.payload, type=DeadLetter) for row in found]


@examples(25)
@given(fleets(STEPS), jobs, st.sets(st.integers(0, STEPS - 1)), st.data())
def test_nonsense_is_as_a_report_that_was_not_sent(
    fleet: Fleet, job: Settings, lying: set[int], data: st.DataObject
) -> None:
    lied_to, told_nothing = World(fleet, job), World(fleet, job)
    for number in range(STEPS):
        honest = number not in lying
        lie = b"" if honest else data.draw(nonsense(fleet.report(number, LIAR)))
        lied_to.step(number, lie, honest=honest)
        told_nothing.step(number, None, honest=honest)
    assert lied_to.rounds == told_nothing.rounds
    assert lied_to.state == told_nothing.state
    assert [letter.key for letter in lied_to.letters] == [f"c/{LIAR}"] * len(lying)


@examples(10)
@given(fleets(LONGER), jobs, st.data())
def test_a_broker_that_goes_on_with_nonsense_is_left_out(
    fleet: Fleet, job: Settings, data: st.DataObject
) -> None:
    """It gives and gets nothing, and is in no range and no average that is shown."""
    world = World(fleet, job)
    world.step(0, b"")
    for number in range(1, LONGER):
        world.step(number, data.draw(nonsense(fleet.report(number, LIAR))), honest=False)
    for record in world.rounds:
        if record.at > START_MS + SILENCE * STEP_MS:
            assert LIAR not in record.usage
            assert LIAR not in {
                broker for m in record.moves for broker in (m.source, m.destination)
            }
    assert len(world.letters) == LONGER - 1


def test_a_reading_of_1e14_of_100_leaves_range_and_plan_as_they_were() -> None:
    """Two of four brokers are busy, and one of these says it."""
    owner = {name: BROKERS[i % 2] for i, name in enumerate(BUNDLES)}
    cpu = dict(zip(BROKERS[:4], (90.0, 80.0, 10.0, 10.0), strict=True))
    fleet = Fleet(owner, [cpu] * STEPS, dict.fromkeys(BUNDLES, 1000.0))
    lie = b'{"cpu":{"usage":1e14,"limit":100},"lastStats":{}}'
    for pair in [("trimtab", "least-predicted-usage"), ("threshold", "least-long-term-rate")]:
        job = job_of(pair, observe=False, grace=60.0)
        lied_to, told_nothing = World(fleet, job), World(fleet, job)
        for number in range(STEPS):
            lied_to.step(number, lie, honest=number != 3)
            told_nothing.step(number, None, honest=number != 3)
        assert [record.moves for record in lied_to.rounds if record.moves]
        assert lied_to.rounds == told_nothing.rounds
        assert max(record.summary["usage_range"] for record in lied_to.rounds) < 1.0
        (letter,) = lied_to.letters
        assert (letter.reason, letter.field, letter.key) == ("implausible", "cpu", f"c/{LIAR}")
        assert letter.detail == "implausible: cpu is 1e+14 of a limit of 100"
