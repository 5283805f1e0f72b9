"""Records say who owns, reports say what it weighs."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from tests.support.reports import bundle, snapshot
from trimtab.intake.assemble import Holdings, assemble
from trimtab.model import Epoch
from trimtab.ownership import State
from trimtab.reasons import Rule
from trimtab.view import View
from trimtab.wire.ownership import Record

ONE, TWO = bundle(0, 2), bundle(1, 2)


def record(
    owner: str | None, state: State = State.OWNED, *, destination: str | None = None
) -> Record:
    return Record(state=state, epoch=Epoch(3, 7), owner=owner, destination=destination)


def rows(view: View) -> dict[str, tuple[str, str, bool]]:
    """Bundle to owner, intended owner and whether it may move."""
    names, bundles = view.brokers.names, view.bundles
    return {
        name: (names[owner], names[intended], bool(movable))
        for name, owner, intended, movable in zip(
            bundles.names, bundles.owner, view.intended, bundles.movable, strict=True
        )
    }


FLEET = [snapshot("b:1", {TWO: 2.0}), snapshot("a:1", {ONE: 1.0})]


def test_an_owned_and_reported_bundle_may_move() -> None:
    view, obstacles = assemble("c", FLEET, Holdings({ONE: record("a:1"), TWO: record("b:1")}))
    assert view.brokers.names == ("a:1", "b:1")
    assert rows(view) == {ONE: ("a:1", "a:1", True), TWO: ("b:1", "b:1", True)}
    assert [view.epoch(name) for name in view.bundles.names] == [Epoch(3, 7)] * 2
    assert view.bundles.short[0].tolist() == [1.0, 2.0]
    assert obstacles == {}


def test_a_bundle_without_a_record_weighs_but_stays() -> None:
    view, obstacles = assemble("c", FLEET, Holdings({ONE: record("a:1")}))
    assert rows(view)[TWO] == ("b:1", "b:1", False)
    assert obstacles == Counter({Rule.UNOWNED: 1})


def test_of_a_bundle_without_an_owner_one_report_is_believed() -> None:
    """A bundle that is in a view twice would be counted, and placed, twice."""
    older, newer = snapshot("a:1", {ONE: 1.0, TWO: 9.0}), snapshot("b:1", {TWO: 2.0})
    newer = replace(newer, appended_ms=older.appended_ms + 1)
    for records in ({}, {TWO: record(None, State.FREE)}):
        view, obstacles = assemble("c", [older, newer], Holdings(records | {ONE: record("a:1")}))
        assert rows(view) == {ONE: ("a:1", "a:1", True), TWO: ("b:1", "b:1", False)}
        assert len(view.bundles.names) == 2
        assert view.bundles.short[0].tolist() == [1.0, 2.0]
        assert obstacles == Counter({Rule.UNOWNED: 1, Rule.CONFLICT: 1})


def test_a_claim_of_bundles_of_others_changes_nothing_of_theirs() -> None:
    holdings = Holdings({ONE: record("a:1"), TWO: record("b:1")})
    honest, _ = assemble("c", FLEET, holdings)
    greedy = replace(snapshot("b:1", {ONE: 7.0, TWO: 2.0}), appended_ms=10**9)
    view, obstacles = assemble("c", [greedy, FLEET[1]], holdings)
    assert rows(view) == rows(honest)
    assert view.bundles.short[0].tolist() == honest.bundles.short[0].tolist()
    assert obstacles == Counter({Rule.CONFLICT: 1})


def test_a_report_that_contradicts_its_record_is_left_out_and_counted() -> None:
    view, obstacles = assemble("c", FLEET, Holdings({ONE: record("b:1"), TWO: record("b:1")}))
    assert set(rows(view)) == {TWO}
    assert obstacles == Counter({Rule.CONFLICT: 1})


def test_a_bundle_being_released_counts_where_it_goes() -> None:
    leaving = record("a:1", State.RELEASING, destination="b:1")
    view, obstacles = assemble("c", FLEET, Holdings({ONE: leaving, TWO: record("b:1")}))
    assert rows(view)[ONE] == ("a:1", "b:1", False)
    assert obstacles == Counter({Rule.IN_FLIGHT: 1})


def test_a_move_issued_but_not_journalled_counts_where_it_goes() -> None:
    records = {ONE: record("a:1"), TWO: record("b:1")}
    view, _ = assemble("c", FLEET, Holdings(records, in_flight={ONE: "b:1"}))
    assert rows(view)[ONE] == ("a:1", "b:1", False)


def test_a_namespace_that_does_not_tile_stands_still() -> None:
    records = {ONE: record("a:1"), TWO: record("b:1")}
    view, obstacles = assemble("c", FLEET, Holdings(records, broken=frozenset({"t/ns"})))
    assert not view.bundles.movable.any()
    assert obstacles == Counter({Rule.BROKEN_NAMESPACE: 2})


def test_observing_only_believes_the_newest_report() -> None:
    late = snapshot("b:1", {ONE: 5.0})
    fleet = [snapshot("a:1", {ONE: 1.0}), late]
    view, obstacles = assemble("c", fleet, None)
    assert rows(view) == {ONE: ("b:1", "b:1", True)}
    assert obstacles == Counter({Rule.CONFLICT: 1})


@pytest.mark.parametrize("holdings", [None, Holdings({ONE: record("a:1")})])
def test_a_heartbeat_bundle_stays(holdings: Holdings | None) -> None:
    """Real brokers list theirs as loaded once they were asked for their health."""
    beat = bundle(0, 1, "pulsar/prod/a:1")
    view, obstacles = assemble("c", [snapshot("a:1", {ONE: 1.0, beat: 0.5})], holdings)
    assert rows(view) == {ONE: ("a:1", "a:1", True), beat: ("a:1", "a:1", False)}
    assert obstacles == Counter({Rule.NOT_MOVABLE: 1})


def test_an_empty_cluster_is_a_view_too() -> None:
    view, obstacles = assemble("c", [], Holdings({}))
    assert view.brokers.resources.shape == (5, 0)
    assert view.bundles.short.shape == (4, 0)
    assert obstacles == {}


def test_the_order_of_snapshots_changes_nothing() -> None:
    holdings = Holdings({ONE: record("a:1"), TWO: record("b:1")})
    forth, back = (assemble("c", fleet, holdings)[0] for fleet in (FLEET, FLEET[::-1]))
    assert list(forth.bundles.names) == list(back.bundles.names)
    assert forth.bundles.short.tolist() == back.bundles.short.tolist()


def test_a_bundle_of_a_lost_broker_weighs_and_does_not_move() -> None:
    records = {ONE: record("a:1"), TWO: record("b:1")}
    view, obstacles = assemble("c", FLEET, Holdings(records, gone={"a:1"}))
    assert rows(view)[ONE] == ("a:1", "a:1", False)
    assert obstacles == Counter({Rule.OWNER_LOST: 1})


def test_what_a_lost_broker_says_of_bundles_that_others_own_is_no_contradiction() -> None:
    records = {ONE: record("b:1"), TWO: record("b:1")}
    view, obstacles = assemble("c", FLEET, Holdings(records, gone={"a:1"}))
    assert (set(rows(view)), obstacles) == ({TWO}, Counter())
