"""Policies and drains that leave too few brokers are problems of the round."""

from __future__ import annotations

import msgspec
import pytest

from tests.support.clusters_by_rows import said, snapshot_row
from tests.support.fleets import EIGHTHS, fleet, round_at, two_each, woken
from trimtab.cluster.operator import Cluster
from trimtab.explaining.shortages import estimate_left
from trimtab.policies import Isolation
from trimtab.wire.intent import IntentKind
from trimtab.wire.rows import Row


def drained(*brokers: str) -> list[Row]:
    return [said(IntentKind.DRAIN, broker=broker) for broker in brokers]


def isolated(*primary: str, secondary: tuple[str, ...] = (), least: int = 1) -> Row:
    policy = Isolation(("public/.*",), primary, secondary, least)
    return said(IntentKind.ISOLATION, name="vip", isolation=msgspec.to_builtins(policy))


def problems_of(it: Cluster, *rows: Row) -> list[str]:
    it.take(rows, 2000)
    return list(woken(it, 61_000).problems)


@pytest.mark.parametrize(
    ("policy", "says"),
    [
        (isolated("big-.*"), "isolation policy vip: 0 available brokers for the 1 that it needs"),
        (isolated("a", "b", least=3), "2 available brokers for the 3 that it needs"),
        (isolated("a", secondary=("b",), least=3), "(primary and secondary: a, b)"),
    ],
)
def test_a_policy_that_leaves_too_few_brokers_is_a_problem(policy: Row, says: str) -> None:
    (problem,) = problems_of(two_each(), policy)
    assert says in problem


@pytest.mark.parametrize(
    "policy",
    [isolated("a"), isolated("a", secondary=("b", "c"), least=3), isolated("a", least=0)],
)
def test_a_policy_with_enough_brokers_is_none(policy: Row) -> None:
    assert problems_of(two_each(), policy) == []


def test_a_draining_broker_is_none_that_a_policy_can_use() -> None:
    (problem,) = problems_of(two_each(), isolated("a"), *drained("a:1"))
    assert "its bundles can go to no broker" in problem


def test_a_drain_that_the_others_cannot_carry_is_a_problem() -> None:
    """Four brokers at 50 % each."""
    it = two_each()
    assert round_at(it, 2000, *drained("a:1")).problems == ()
    (problem,) = round_at(it, 3000, *drained("b:1", "c:1")).problems
    assert problem.startswith("draining a:1, b:1, c:1: with all bundles the 1 broker left would be")
    assert "at about 200.0 %, above round.overloaded_threshold of 85.0 %" in problem
    (none,) = round_at(it, 4000, *drained("d:1")).problems
    assert none.startswith("draining a:1, b:1, c:1 and 1 more: no broker is left")
    for broker in ("b:1", "c:1", "d:1"):
        it.take([said(IntentKind.UNDRAIN, broker=broker)], 5000)
    assert woken(it, 61_000).problems == ()


def test_a_finished_drain_is_not_reported_as_a_problem() -> None:
    it = fleet(dict.fromkeys(EIGHTHS, "a:1"))
    it.take([snapshot_row("b:1", {}, cpu=1.0, at_ms=1500)], 1500)
    assert problems_of(it, *drained("b:1")) == []


def test_the_usage_that_is_left_is_a_mean_over_brokers_alike() -> None:
    assert estimate_left({"a": 0.5, "b": 0.5, "c": 0.2}, {"c", "b"}) == (1, 1.2)
    assert estimate_left({"a": 0.5}, {"a"}) == (0, 0.0)
