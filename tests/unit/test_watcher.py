"""What the watcher of an older job says late changes nothing."""

from __future__ import annotations

import pytest

from tests.support.clusters_by_rows import said
from tests.support.fleets import two_each
from trimtab.cluster.operator import Cluster
from trimtab.doubt import Doubt
from trimtab.state.watcher import LISTEN_MS
from trimtab.wire.intent import IntentKind
from trimtab.wire.rows import Row


def lost(generation: int, at_ms: int = 0) -> Row:
    return said(IntentKind.BROKER_LOST, at_ms, broker="a:1", generation=generation)


def joined(generation: int) -> Row:
    return said(IntentKind.BROKER_JOINED, broker="a:1", generation=generation)


def doubted(generation: int, level: Doubt) -> Row:
    return said(IntentKind.DOUBT, name="redis", level=level.value, generation=generation)


def after(*rows: Row) -> Cluster:
    """A cluster that has heard these, one batch after another."""
    cluster = two_each()
    for number, row in enumerate(rows):
        cluster.receive([row], 2000 + number)
    return cluster


def test_a_driver_that_was_cut_off_takes_no_broker_from_its_successor() -> None:
    """The successor knows the broker as alive, and has no reason to say so again."""
    assert not after(joined(6), lost(5)).memory.liveness.gone


def test_its_doubt_does_not_stay_either() -> None:
    after_all = after(doubted(6, Doubt.STABLE), doubted(5, Doubt.UNSTABLE))
    assert not after_all.memory.doubts


@pytest.mark.parametrize("generation", [0, 6, 7])
def test_what_the_newest_one_says_counts_and_what_a_version_without_generations_says(
    generation: int,
) -> None:
    assert set(after(joined(6), lost(generation)).memory.liveness.gone) == {"a:1"}


def test_operators_are_heard_whatever_the_watchers_generation() -> None:
    assert after(joined(6), said(IntentKind.DRAIN, broker="a:1")).memory.liveness.draining


@pytest.mark.parametrize("generation", [1, 1 << 52])
def test_an_operator_speaks_for_no_watcher_whatever_generation_it_names(generation: int) -> None:
    """One above all jobs' would make the cluster deaf to the real watcher for a day."""
    drained = said(IntentKind.DRAIN, broker="a:1", generation=generation)
    heard = after(joined(6), drained, lost(6)).memory.liveness
    assert (set(heard.draining), set(heard.gone)) == ({"a:1"}, {"a:1"})


def test_where_claims_are_lost_with_everything_else_a_job_is_heard_after_a_day() -> None:
    assert not after(joined(6), lost(1, LISTEN_MS - 1)).memory.liveness.gone
    assert after(joined(6), lost(1, LISTEN_MS)).memory.liveness.gone
