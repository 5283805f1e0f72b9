"""A round's record stays small enough for Kafka, whatever happened."""

from __future__ import annotations

from tests.support.clusters_by_rows import cluster, held, skewed
from tests.support.reports import bundle
from trimtab.assemble import assemble
from trimtab.liveness import Liveness
from trimtab.memory import Memory
from trimtab.plan import Plan, Refusal
from trimtab.reasons import Rule
from trimtab.recording import Context, recorded
from trimtab.settings import Settings
from trimtab.situation import situation_of


def test_very_many_refusals_and_problems_are_counted_and_cut() -> None:
    refusals = tuple(Refusal(bundle(0), "a:1", Rule.BUDGET) for _ in range(5000))
    view, _ = assemble("c", [], None)
    problems = tuple(f"problem {n}" for n in range(1003))
    found = situation_of(Memory(), {}, Settings(), 1)
    context = Context(1, 1, Settings(), 0, problems, "", Liveness(), found, None)
    record = recorded(Plan(refusals=refusals), view, {}, context)
    assert (len(record.refusals), record.refused) == (1000, {"budget": 5000})
    assert record.problems[-2:] == ("problem 999", "and 3 more")


def test_a_plain_round_is_told_in_full() -> None:
    it = cluster({"round.max_moves": 1})
    it.receive(skewed([bundle(i) for i in range(4)]), 0)
    record = held(it, 1)
    assert (len(record.moves), len(record.refusals), record.refused) == (1, 1, {"budget": 1})
