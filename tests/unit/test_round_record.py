"""A round's record stays small enough for Kafka, whatever happened."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import msgspec
import numpy as np
import pytest

from tests.support.clusters_by_rows import cluster, held, skewed, snapshot_row
from tests.support.reports import bundle, snapshot
from trimtab.cluster.plan_records import (
    record_merge,
    record_move,
    record_refusal,
    record_repair,
    record_settled,
    record_split,
)
from trimtab.cluster.round_record import Context, record_round
from trimtab.health.assessment import situation_of
from trimtab.intake.assemble import assemble
from trimtab.model import Epoch
from trimtab.ownership import Event
from trimtab.plan import Forecast, LandedMove, Merge, Move, Plan, Refusal, Repair, Split
from trimtab.reasons import Reason, Rule
from trimtab.settings import Settings
from trimtab.state.memory import Memory
from trimtab.wire.columns import pack
from trimtab.wire.planned import ForecastRecord, SettledMove


def test_very_many_refusals_and_problems_are_counted_and_cut() -> None:
    refusals = tuple(Refusal(bundle(0), "a:1", Rule.BUDGET) for _ in range(5000))
    view, _ = assemble("c", [], None)
    problems = ("x" * 2000, *(f"problem {n}" for n in range(1, 1003)))
    found = situation_of(Memory(), {}, Settings(), 1)
    context = Context(1, Settings(), Memory(), found, problems)
    record = record_round(Plan(refusals=refusals), view, {}, context)
    assert (len(record.refusals), record.refused) == (1000, {"budget": 5000})
    assert record.problems[-2:] == ("problem 999", "and 3 more")
    assert len(record.problems[0]) == 1000


def test_a_usage_that_is_no_number_is_not_told() -> None:
    """JSON has none, and an unreadable record stops the sinks."""
    strange = replace(snapshot("a:1", {}), resources=np.full(5, np.inf))
    unread = snapshot_row("a:1", {})._replace(payload=pack(strange))
    it = cluster()
    it.receive([snapshot_row("b:1", {}, cpu=10.0), unread], 0)
    record = held(it, 1)
    assert record.skipped == "uncomputable-view"
    assert record.usage == pytest.approx({"b:1": 0.1})


def test_a_plain_round_is_told_in_full() -> None:
    it = cluster({"round.max_moves": 1})
    it.receive(skewed([bundle(i) for i in range(4)]), 0)
    record = held(it, 1)
    assert (len(record.moves), len(record.refusals), record.refused) == (1, 1, {"budget": 1})


EPOCH = Epoch(1, 2)
LOW, HIGH = bundle(0), bundle(1)
SEEN = Forecast(0.1, 0.2, 0.3)


@pytest.mark.parametrize(
    ("change", "record"),
    [
        (Move(LOW, "a:1", "b:1", "asked", EPOCH), record_move),
        (Split(LOW, "a:1", Reason.ASKED, EPOCH, "range_equally_divide", (7,)), record_split),
        (Merge(LOW, HIGH, "a:1", Reason.COLD_NEIGHBOURS, EPOCH, Epoch(1, 3)), record_merge),
        (Repair(LOW, Event.ASSIGN, "b:1", Reason.OWNER_LOST, EPOCH), record_repair),
        (Refusal(LOW, "a:1", Rule.BUDGET, "b:1"), lambda change, _: record_refusal(change)),
    ],
    ids=lambda each: type(each).__name__,
)
def test_a_record_has_each_field_of_its_change(
    change: Any, record: Callable[[Any, str], msgspec.Struct]
) -> None:
    recorded = record(change, "because")
    named = {each.name for each in fields(change)}
    assert set(recorded.__struct_fields__) - {"why"} == named
    assert {name: getattr(recorded, name) for name in named} == {
        name: getattr(change, name) for name in named
    }


def test_a_settled_move_has_the_forecasts_of_both_brokers() -> None:
    other = Forecast(0.4, 0.5, 0.6)
    assert record_settled(LandedMove(LOW, "a:1", "b:1", 3, 4.0, SEEN, other)) == SettledMove(
        bundle=LOW,
        source="a:1",
        destination="b:1",
        round=3,
        seconds=4.0,
        left=ForecastRecord(before=0.1, predicted=0.2, realised=0.3),
        joined=ForecastRecord(before=0.4, predicted=0.5, realised=0.6),
    )
