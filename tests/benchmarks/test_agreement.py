"""Two sides that did not look at the same cluster, or decided otherwise, are told apart."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest

from benchmarks.agreement import Disagreement, Moves, differences, digest, same_cluster, ties
from benchmarks.decisions import BROKERS, BUNDLES, MATCHES, SEED, SETTINGS, view_of
from benchmarks.synthetic import columns
from trimtab.arrays import CPU
from trimtab.settings import SHEDDING
from trimtab.view import View

WEIGHTS = SETTINGS.weights
MOVES: Moves = [("a/1", "a", "c"), ("a/2", "a", "d"), ("b/1", "b", "c")]


def test_a_seed_gives_the_same_cluster_again() -> None:
    first, second, other = columns(7, 5, 1), columns(7, 5, 1), columns(7, 5, 2)
    for name in (field.name for field in fields(first)):
        assert np.array_equal(getattr(first, name), getattr(second, name))
    assert not np.array_equal(first.stats, other.stats)


def test_a_cluster_has_what_each_broker_reports_of_its_own_bundles() -> None:
    view = view_of(columns(3, 4, 1))
    assert view.bundles.owner.tolist() == [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2]
    assert view.brokers.listed.tolist() == [4, 4, 4]
    assert view.bundles.movable.all()
    assert np.allclose(view.brokers.traffic[:, 1], view.bundles.short[:, 4:8].sum(axis=1))


def test_no_tie_decides_on_the_cluster_that_is_measured() -> None:
    assert ties(view_of(columns(BROKERS, BUNDLES, SEED)), WEIGHTS) == []


def test_a_tie_is_named() -> None:
    view = view_of(columns(5, 4, 1))
    resources = view.brokers.resources.copy()
    resources[CPU] = 99.0
    equal = replace(view, brokers=replace(view.brokers, resources=resources))
    assert ties(equal, WEIGHTS) == ["usage", "usage with memory"]


def test_a_digest_tells_clusters_apart() -> None:
    view = view_of(columns(5, 4, 1))
    same_cluster(view, WEIGHTS, digest(view_of(columns(5, 4, 1)), WEIGHTS))
    with pytest.raises(Disagreement, match="two clusters"):
        same_cluster(view, WEIGHTS, digest(view_of(columns(5, 4, 2)), WEIGHTS))
    with pytest.raises(Disagreement, match="two clusters"):
        same_cluster(view, WEIGHTS, digest(with_one_other_average(view), WEIGHTS))


def with_one_other_average(view: View) -> View:
    long = view.bundles.long.copy()
    long[3, 7] *= 1.000_001
    return replace(view, bundles=replace(view.bundles, long=long))


@pytest.mark.parametrize(
    "theirs",
    [
        pytest.param([*MOVES[1:]], id="a bundle less"),
        pytest.param([*MOVES, ("c/1", "c", "a")], id="a broker more"),
        pytest.param([("a/1", "a", "d"), *MOVES[1:]], id="another destination"),
        pytest.param([("a/1", "a", None), *MOVES[1:]], id="no destination"),
        pytest.param([("a/1", "b", "c"), *MOVES[1:]], id="another source"),
        pytest.param([MOVES[0], *MOVES], id="a bundle twice"),
    ],
)
@pytest.mark.parametrize("ordered", [True, False])
def test_a_difference_is_seen(theirs: Moves, ordered: bool) -> None:
    assert differences(MOVES, theirs, ordered)


def test_the_order_counts_within_a_broker_where_there_is_one() -> None:
    assert differences(MOVES, [MOVES[2], MOVES[0], MOVES[1]], ordered=True) == []
    assert len(differences(MOVES, [MOVES[1], MOVES[0], MOVES[2]], ordered=True)) == 1
    assert differences(MOVES, [MOVES[1], MOVES[0], MOVES[2]], ordered=False) == []


def test_every_shedder_of_pulsar_has_its_match() -> None:
    assert MATCHES.keys() == set(SHEDDING) - {"trimtab"}
