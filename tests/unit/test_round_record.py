"""A round's record stays small enough for Kafka, whatever happened."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.support.clusters_by_rows import cluster, held, skewed, snapshot_row
from tests.support.reports import bundle, snapshot
from trimtab.cluster.round_record import Context, record_round
from trimtab.health.assessment import situation_of
from trimtab.intake.assemble import assemble
from trimtab.plan import Plan, Refusal
from trimtab.reasons import Rule
from trimtab.settings import Settings
from trimtab.state.memory import Memory
from trimtab.wire.columns import pack


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
