"""Moves off brokers that stand out where nothing is sure: one bundle each, by what is expected.

A plan moves what surely helps (`trimtab.planner.search.several`). Where nothing tells what bundles
take, that is nothing at all, and a broker that stands out would do so for good. So the bundle that
is believed to take most of its busiest resource goes to the broker that is least busy with it, as
long as that stays below the source even at worst. What a moved bundle takes is known soon, and the
next plan knows more. Each broker's heaviest bundles are tried, as many as the effort allows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trimtab.arrays import Floats, Ints
from trimtab.load_model.resources.takes import Takes
from trimtab.planner.search.ground import BoardMove, Ground


def relieve_unsure(
    ground: Ground, keeps: list[int], sure: Sequence[BoardMove], limit: float, tries: int
) -> tuple[BoardMove, ...]:
    """At most one move off each broker above the usage ``limit``, the fullest first; no broker
    receives two, and none is one of the ``sure`` moves' brokers. ``tries``: bundles compared with
    all brokers, of one broker at least one. Only where several resources compete."""
    takes = ground.fleet.takes
    assert takes is not None
    usage, idle = ground.fleet.usage, np.ones(len(ground.fleet.usage), np.bool_)
    idle[[broker for step in sure for broker in (step.source, step.destination)]] = False
    there, here = ground.receivers[idle[ground.receivers]], ground.brokers[idle[ground.brokers]]
    full = here[usage[here] > limit]
    each = max(tries // max(len(full), 1), 1)
    steps: list[BoardMove] = []
    for hot in full[np.argsort(-usage[full], kind="stable")].tolist():
        rows = ground.order[ground.ends[hot] : ground.ends[hot + 1]]
        there = there[there != hot]
        if len(rows) <= keeps[hot] or not there.size:
            continue
        step = _heaviest(hot, rows, there, takes, each)
        if step is not None:
            steps.append(step)
            there = there[there != step.destination]
    return tuple(steps)


def _heaviest(hot: int, rows: Ints, there: Ints, takes: Takes, tries: int) -> BoardMove | None:
    """The move of the bundle that takes most and fits; None if none of so many does."""
    shares = takes.used[:, hot] * takes.scale[:, hot]
    busy = int(np.argmax(shares))
    for row in rows[np.argsort(-takes.need[busy, rows], kind="stable")][:tries].tolist():
        if takes.need[busy, row] <= 0:
            return None
        worst = _usage_with(takes, there, takes.need[:, row] + takes.tail[:, row])
        to = int(np.argmin(worst))
        if worst[to] < shares[busy]:
            return BoardMove(row, hot, int(there[to]))
    return None


def _usage_with(takes: Takes, brokers: Ints, more: Floats) -> Floats:
    """(k,) usage of the brokers with (r,) ``more`` of each resource."""
    usage: Floats = ((takes.used[:, brokers] + more[:, None]) * takes.scale[:, brokers]).max(axis=0)
    return usage
