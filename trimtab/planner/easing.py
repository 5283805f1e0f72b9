"""Move bundles of anti-affinity groups for balance, after all other moves are planned.

while the pool's range is above the aim:
  for the largest such bundles of the hottest brokers, each with the coldest broker that the round
  allows and that then has no more of the group than it needs:
    take the move that lowers the busier of the two brokers most, if that is worth a move
At most one bundle of a group moves in a plan.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from trimtab.arrays import Bools, Ints
from trimtab.filters import find_permitted
from trimtab.filters.affinity import GroupCount, counts, domain_of
from trimtab.planner.constraints import Draft
from trimtab.planner.groups import count_needed
from trimtab.planner.pools import Pool
from trimtab.planner.search.ground import BoardMove, Ground

_HOTTEST: Final = 4
"""Brokers whose bundles are tried. Lower: a possible move is missed; higher: each move takes longer
to find, as the filters judge every bundle."""
_LARGEST: Final = 8
"""Bundles of each broker that are tried; the same trade-off."""
_MOST: Final = 64
"""The most such moves in a plan: each is found by a search of its own."""


class _Relief(NamedTuple):
    gain: float
    """By how much the usage of the busier of the two brokers falls."""
    step: BoardMove


def ease(draft: Draft, pool: Pool, ground: Ground, aim: float, worth: float) -> None:
    """Add moves of a pool's bundles to the draft, towards a range of ``aim``.

    Each lowers the busier of its two brokers by at least ``worth`` of the range's excess.
    """
    if pool.grouped is None:
        return
    for _ in range(_MOST):
        low, high = ground.extremes(draft.fleet.usage)
        best = _best(draft, pool.grouped, np.flatnonzero(pool.brokers))
        if high - low <= aim or best is None or best.gain < worth * (high - low - aim):
            break
        draft.add([best.step])


def _best(draft: Draft, grouped: Bools, brokers: Ints) -> _Relief | None:
    fleet, best = draft.fleet, None
    may_go = grouped & fleet.movable
    done = {draft.group(row) for row in draft.moved}
    hottest = brokers[np.argsort(-fleet.usage[brokers], kind="stable")][:_HOTTEST]
    for source in hottest.tolist():
        rows = np.flatnonzero(may_go & (fleet.where == source))
        for row in rows[np.argsort(-fleet.size[rows], kind="stable")][:_LARGEST].tolist():
            relief = None if draft.group(row) in done else _relief(draft, row, source)
            if relief is not None and (best is None or relief.gain > best.gain):
                best = relief
    return best


def _relief(draft: Draft, row: int, source: int) -> _Relief | None:
    if draft.staying[source] <= 1:
        return None
    fleet, usage = draft.fleet, draft.fleet.usage
    arrived = usage + fleet.size[row] * fleet.gain
    allowed = (arrived <= draft.peak) & (arrived < usage[source])
    if allowed.any():
        allowed &= draft.destinations(row)
    if allowed.any():
        allowed &= _room(draft, row, source)
    if not allowed.any():
        return None
    to = int(np.argmin(np.where(allowed, arrived, np.inf)))
    left = usage[source] - fleet.size[row] * fleet.gain[source]
    return _Relief(float(usage[source] - max(left, arrived[to])), BoardMove(row, source, to))


def _room(draft: Draft, row: int, source: int) -> Bools:
    """(n,) brokers that would then have no more of the bundle's group than they need, nor would
    their failure domain if domains count."""
    view, projection = draft.view, draft.projection
    request = projection.request(row, source)
    held = counts(request, GroupCount.NAMESPACES)
    if held is None:
        return np.ones(len(view.brokers.names), np.bool_)
    there = find_permitted(request)
    members = len(projection.members(draft.group(row) or ""))
    room = held < count_needed(members, int(np.count_nonzero(there)))
    room |= projection.ranges(request.row) > 0
    if draft.settings.placement.failure_domains and view.policies.domains:
        domain = domain_of(view)
        most = count_needed(members, len(np.unique(domain[there])))
        room &= (np.bincount(domain, held)[domain] < most) | (domain == domain[source])
    return room
