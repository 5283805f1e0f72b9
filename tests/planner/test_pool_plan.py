"""Of the brokers of a pool, those that a plan can relieve are balanced, whatever the others do."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.planner.fleets import fleet_of
from tests.support.clusters import Broker, cluster, throughputs
from trimtab.load_model.fleet import Fleet
from trimtab.load_model.history import PlannerHistory
from trimtab.load_model.resources.takes import Takes
from trimtab.planner.constraints import Draft
from trimtab.planner.outlook import find_prospect
from trimtab.planner.pool_plan import balance
from trimtab.planner.pools import Pool
from trimtab.planner.search.ground import BoardMove
from trimtab.settings import Settings

UNEVEN = (24, 20, 20)
"""Bundles of the brokers that a plan can make even."""
SIZE = 0.025


def fleet(stuck: int) -> Fleet:
    """Uneven brokers, and others on which a process takes all the processors that their six bundles
    leave; each of the latter may be what takes them."""
    count = np.array((*UNEVEN, *(6,) * stuck))
    where = np.repeat(np.arange(len(count)), count)
    need = np.full((2, len(where)), SIZE) * np.array([[1.0], [0.5]])
    used = SIZE * count * np.array([[1.0], [0.5]])
    used[0, len(UNEVEN) :] = 1.0
    tail = np.zeros_like(need)
    tail[0, where >= len(UNEVEN)] = 0.7
    sway = np.zeros((2, *need.shape))
    takes = Takes(used, np.ones_like(used), need, np.zeros_like(need), tail, sway, used)
    plain = fleet_of(need[0], where, np.ones(len(count)))
    return replace(plain, usage=takes.usage, takes=takes, near_overload=0.9)


def planned(fleet: Fleet) -> list[BoardMove]:
    counts = np.bincount(fleet.where).tolist()
    view = cluster(
        **{f"b{row}": Broker(0.5, throughputs(*[1.0] * count)) for row, count in enumerate(counts)}
    )
    draft = Draft(view, fleet, Settings())
    pool = Pool(np.ones(len(counts), np.bool_), np.ones(len(fleet.where), np.bool_), None)
    found = find_prospect(draft, pool, 0.0)
    assert found is not None
    balance(draft, found, 0.0, PlannerHistory())
    return draft.steps


@pytest.mark.parametrize("stuck", [0, 1, 3])
def test_brokers_that_no_plan_relieves_do_not_keep_the_others_apart(stuck: int) -> None:
    made = fleet(stuck)
    steps = planned(made)
    where = made.where.copy()
    for step in steps:
        where[step.bundle] = step.destination
    assert np.ptp(np.bincount(where)[: len(UNEVEN)]) * SIZE <= 0.05
    assert {step.source for step in steps} == {0}
