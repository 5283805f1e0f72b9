"""Keep the namespaces of an anti-affinity group apart.

for each group with several namespaces on one broker, or, where domains count, in one domain:
  from the broker with the most, take the namespace with the smallest load: each of its bundles goes
  to one of the brokers with the least of the group, the one with the lowest predicted usage, if
  these moves together spread the group better
  repeat until no such move does
spread better = a smaller sum of the squared counts of the domains, and then of the brokers
No broker is raised above the start's peak while there is another way; after that only the overload
limit counts: where all brokers are alike, every move exceeds the peak a little.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np

from trimtab.arrays import Bools, Floats, Ints
from trimtab.filters import find_permitted
from trimtab.filters.affinity import GroupCount, counts, domain_of
from trimtab.planner.constraints import Draft
from trimtab.planner.search.ground import BoardMove

_TRIES: Final = 2_000
"""Pairs of a namespace and a broker tried in a round: bounds its time; the rest waits for later
rounds."""
_MOST: Final = 500
"""Moves in a round, or a few more. Lower: a spread takes many rounds; higher: many clients must
reconnect at once."""


def spread_groups(draft: Draft) -> None:
    """Add the moves that spread the groups to the draft."""
    if not draft.view.policies.groups:
        return
    limit = max(draft.peak, draft.settings.round.overloaded_threshold)
    domain, tries = _domains(draft), iter(range(_TRIES))
    most = len(draft.steps) + _MOST
    for rows in _crowded(draft, domain):
        group = _Group(draft, rows, domain)
        for ceiling in (draft.peak, limit):
            while len(draft.steps) < most and (found := group.better(ceiling, tries)):
                draft.add(found)


def _domains(draft: Draft) -> Ints | None:
    """(n,) failure domain of each broker; None if domains do not count."""
    policies, placement = draft.view.policies, draft.settings.placement
    return domain_of(draft.view) if placement.failure_domains and policies.domains else None


def _crowded(draft: Draft, domain: Ints | None) -> Iterator[Ints]:
    """Bundle rows of each group that has several namespaces on one broker or in one domain."""
    bundles, where = draft.view.bundles, draft.fleet.where
    n, group_of = len(draft.view.brokers.names), draft.view.policies.group_of
    numbers: dict[str | None, int] = {None: -1}
    column = [numbers.setdefault(group_of(s), len(numbers)) for s in bundles.namespaces]
    number = np.array([*column, -1])
    rows = np.flatnonzero(number[bundles.namespace] >= 0)
    pairs = np.unique(bundles.namespace[rows].astype(np.int64) * n + where[rows])
    place = pairs % n if domain is None else domain[pairs % n]
    cells, held = np.unique(number[pairs // n] * n + place, return_counts=True)
    crowded = np.unique(cells[held > 1] // n)
    of_group = number[bundles.namespace[rows]]
    rows, of_group = rows[np.argsort(of_group, kind="stable")], np.sort(of_group)
    # Each round starts with another group, so that none is postponed for ever.
    first = draft.view.now_ms // 1000 % max(len(crowded), 1)
    for each in np.roll(crowded, -first).tolist():
        yield rows[slice(*np.searchsorted(of_group, [each, each + 1]))]


class _Held(NamedTuple):
    """Namespaces of a group on each broker and, if domains count, in each domain."""

    brokers: Ints
    domains: Ints | None

    @property
    def crowding(self) -> tuple[int, int]:
        """How crowded the group is; less is better."""
        domains = 0 if self.domains is None else int((self.domains**2).sum())
        return domains, int((self.brokers**2).sum())


class _Group:
    """One group: ``rows`` are all its bundles; their place is read from the draft."""

    def __init__(self, draft: Draft, rows: Ints, domain: Ints | None) -> None:
        self._draft, self._rows, self._domain = draft, rows, domain
        self._namespaces = len(np.unique(draft.view.bundles.namespace[rows]))

    def better(self, ceiling: float, tries: Iterator[int]) -> list[BoardMove]:
        """Moves of one namespace off one broker that spread the group better.

        None if all would raise a broker above ``ceiling``, or if ``tries`` are used up.
        """
        held = self._held()
        of_brokers = ((rows, at) for at in self._sources(held) for rows in self._namespaces_on(at))
        for (rows, source), _ in zip(of_brokers, tries, strict=False):
            steps = self._parted(rows, source, held, ceiling)
            if steps:
                return steps
        return []

    def _held(self) -> _Held:
        draft = self._draft
        request = draft.projection.request(int(self._rows[0]), None)
        brokers = counts(request, GroupCount.NAMESPACES)
        assert brokers is not None  # its namespace is in the group
        if self._domain is None:
            return _Held(brokers, None)
        return _Held(brokers, np.bincount(self._domain, brokers).astype(np.int64))

    def _sources(self, held: _Held) -> list[int]:
        """Brokers that may have more of the group than needed; those with the most first."""
        brokers = held.brokers
        much, of_domain = self._much(brokers), np.zeros_like(brokers)
        if held.domains is not None and self._domain is not None:
            of_domain = held.domains[self._domain]
            much |= self._much(held.domains)[self._domain] & (brokers > 0)
        rows, usage = np.flatnonzero(much), self._draft.fleet.usage
        order = np.lexsort((rows, -usage[rows], -brokers[rows], -of_domain[rows]))
        sources: list[int] = rows[order].tolist()
        return sources

    def _much(self, held: Ints) -> Bools:
        much: Bools = (held >= held.min() + 2) | (held > count_needed(self._namespaces, len(held)))
        return much

    def _namespaces_on(self, source: int) -> list[Ints]:
        """Bundle rows of each namespace on a broker, the smallest load first."""
        fleet, bundles = self._draft.fleet, self._draft.view.bundles
        here = self._rows[fleet.where[self._rows] == source]
        spaces = bundles.namespace[here]
        each = [here[spaces == space] for space in np.unique(spaces).tolist()]
        return sorted(each, key=lambda rows: float(fleet.size[rows].sum()))

    def _parted(self, rows: Ints, source: int, held: _Held, ceiling: float) -> list[BoardMove]:
        """Moves of a namespace's bundles ``rows`` off their broker, if that improves the spread."""
        draft = self._draft
        movable = draft.view.bundles.movable[rows].all()
        if not movable or not draft.moved.isdisjoint(rows.tolist()):
            return []
        if draft.staying[source] <= len(rows):
            return []
        steps = self._scattered(rows, source, ceiling)
        better = len(steps) == len(rows) and self._better(held, steps)
        for step in reversed(steps):
            draft.projection.withdraw(*step)
        return steps if better else []

    def _scattered(self, rows: Ints, source: int, ceiling: float) -> list[BoardMove]:
        """Moves of as many of the bundles as find a broker; the projection counts them."""
        draft, fleet = self._draft, self._draft.fleet
        usage, steps = fleet.usage.copy(), []
        for row in rows[np.argsort(-fleet.size[rows], kind="stable")].tolist():
            arrived = usage + fleet.size[row] * fleet.gain
            destination = self._destination(row, arrived, ceiling)
            if destination is None:
                break
            usage[destination] = arrived[destination]
            usage[source] -= fleet.size[row] * fleet.gain[source]
            draft.projection.add(row, source, destination)
            steps.append(BoardMove(row, source, destination))
        return steps

    def _destination(self, row: int, arrived: Floats, ceiling: float) -> int | None:
        draft = self._draft
        allowed = draft.destinations(row) & (arrived <= ceiling)
        if not allowed.any():
            return None
        # Where the namespace already is, the group does not grow.
        at_home = allowed & (draft.projection.ranges(int(draft.view.bundles.namespace[row])) > 0)
        if at_home.any():
            allowed = at_home
        return int(np.argmin(np.where(allowed, arrived, np.inf)))

    def _better(self, before: _Held, steps: list[BoardMove]) -> bool:
        """Whether the moves that the projection counts are worth it."""
        held = self._held()
        if held.crowding >= before.crowding:
            return False
        draft = self._draft
        row, source, _ = steps[0]
        there = find_permitted(draft.projection.request(row, source))
        to = [step.destination for step in steps]
        most = count_needed(self._namespaces, int(np.count_nonzero(there)))
        if np.maximum(held.brokers - most, 0).sum() > np.maximum(before.brokers - most, 0).sum():
            return False
        if _more(before.brokers, source, to, most):
            return True
        if before.domains is None or self._domain is None:
            return False
        most = count_needed(self._namespaces, len(np.unique(self._domain[there])))
        domain = self._domain
        return _more(before.domains, int(domain[source]), domain[to].tolist(), most)


def count_needed(namespaces: int, places: int) -> int:
    """Namespaces of a group that one place needs to have if they are spread evenly."""
    return -(-namespaces // max(places, 1))


def _more(held: Ints, source: int, to: list[int], most: int) -> bool:
    """Whether ``source`` has more than it needs, or two more than a destination."""
    return bool(held[source] > most or held[source] >= held[to].min() + 2)
