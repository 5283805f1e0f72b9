"""An operator's merge is decided in the next round, or refused with the rule."""

from __future__ import annotations

import pytest

from tests.support.clusters_by_rows import change_row, rounds_in, said
from tests.support.fleets import EIGHTHS
from tests.support.outcomes import told
from tests.support.plans import FIRST_ROUND, waiting_cluster
from trimtab.cluster.operator import Cluster
from trimtab.ownership import State
from trimtab.reasons import Reason
from trimtab.wire.intent import IntentKind
from trimtab.wire.rows import Row


def merge(bundle: str) -> Row:
    return said(IntentKind.MERGE, id="m", bundle=bundle)


def owned(*owners: str, mode: str = "automatic", **settings: object) -> Cluster:
    """EIGHTHS with these owners, the first ones; all others are at a:1."""
    it = waiting_cluster(mode, **settings)
    found = [*owners, *["a:1"] * (len(EIGHTHS) - len(owners))]
    it.take([change_row(name, to, 3) for name, to in zip(EIGHTHS, found, strict=True)], 1500)
    return it


@pytest.mark.parametrize("mode", ["automatic", "approve"])
def test_it_is_granted_in_any_mode_and_done_once_the_halves_are_gone(mode: str) -> None:
    it = owned(mode=mode)
    rows, _ = it.take([merge(EIGHTHS[2])], 2000)
    assert told(rows) == [("m", "accepted", "")]
    [record] = rounds_in(it.wake(FIRST_ROUND)[0])
    wanted = [each for each in record.merges if each.reason == Reason.ASKED]
    assert [(each.bundle, each.neighbour) for each in wanted] == [(EIGHTHS[2], EIGHTHS[3])]
    assert it.memory.round.asked_merges == {}
    rows, _ = it.take([change_row(EIGHTHS[2], None, 5, State.DELETED)], FIRST_ROUND + 1000)
    assert told(rows) == [("m", "done", "")]


@pytest.mark.parametrize(
    ("it", "bundle", "rule"),
    [
        (owned(), EIGHTHS[-1], "invalid-merge"),
        (owned("a:1", "b:1"), EIGHTHS[0], "invalid-merge"),
        (owned(), "t/ns/0x00000000_0x00000001", "unknown-bundle"),
        (owned(), "t/ns", "invalid-merge"),
        (owned(round__observe_only=True), EIGHTHS[0], "observing"),
    ],
    ids=["the last", "two owners", "unknown", "no bundle", "only observing"],
)
def test_what_cannot_be_merged_is_refused(it: Cluster, bundle: str, rule: str) -> None:
    rows, _ = it.take([merge(bundle)], 2000)
    assert told(rows) == [("m", "refused", rule)]


def test_a_pinned_half_stays() -> None:
    it = owned()
    pinned = said(IntentKind.PIN, 0, until=3_600_000, by="ann", bundle=EIGHTHS[3])
    it.take([pinned, merge(EIGHTHS[2])], 2000)
    rows, _ = it.wake(FIRST_ROUND)
    assert told(rows) == [("m", "refused", "pinned")]
