"""Which candidates a lookup may choose from, so that namespaces and groups stay spread.

anti-affinity  keep the failure domains, then the brokers, with the fewest namespaces of the group
evenness       keep the brokers with the fewest bundles of the namespace

as a round's filters do (`trimtab.filters`). The asking broker counts in the records. What others
place at the same time it cannot see there: the script counts placements by tally, and refuses a
broker whose tallies have changed since the records were read. Nothing was placed on a broker
with the fewest, so it still has the fewest, as other counts only grow meanwhile.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from trimtab.policies import NO_DOMAIN
from trimtab.view import spreads_always
from trimtab.wire.hints import Hints
from trimtab.wire.ownership import Candidate, Record

UNCHECKED: Final = -1
"""Given instead of a tally's value: count the placement, whatever the value is."""


@dataclass(frozen=True, slots=True)
class Spread:
    """How the bundles of one namespace, and the namespaces of its group, are to be spread."""

    namespace: str
    group: str | None = None
    members: tuple[str, ...] = ()
    """The namespaces of the group."""
    domains: Mapping[str, str] | None = None
    """Broker to failure domain; None: groups do not spread over domains."""
    evenly: bool = False

    @property
    def namespaces(self) -> tuple[str, ...]:
        """The namespaces whose bundles are counted."""
        own = (self.namespace,) if self.evenly else ()
        return tuple(dict.fromkeys((*self.members, *own)))

    def tallies(self, broker: str) -> list[str]:
        """The tallies in which a placement on the broker counts."""
        return [
            *([_even_tally(self.namespace, broker)] if self.evenly else ()),
            *([_group_tally(self.group, broker)] if self.group is not None else ()),
            *([self._domain_tally(broker)] if self.group is not None and self.domains else ()),
        ]

    def domain_of(self, broker: str) -> str:
        """The broker's failure domain; those without one share one."""
        return (self.domains or {}).get(broker, NO_DOMAIN)

    def _domain_tally(self, broker: str) -> str:
        return f"d {self.group} {self.domain_of(broker)}"


def spread_of(namespace: str, hints: Hints, group: str | None, members: Iterable[str]) -> Spread:
    """How a namespace is spread; ``group``: its anti-affinity group, with these ``members``."""
    return Spread(
        namespace,
        group,
        tuple(members) if group is not None else (),
        hints.domains or None,
        hints.evenly or spreads_always(namespace),
    )


def narrow_spread(
    spread: Spread,
    candidates: Sequence[Candidate],
    records: Mapping[str, Collection[Record]],
    tallied: Mapping[str, int],
) -> list[Candidate]:
    """The candidates that have the fewest.

    ``records``: each namespace's, without those that were too many to read; ``tallied``: tally to
    what was placed since the hints, which alone counts where there are no records.
    """
    had = {space: Counter(filter(None, map(_holder, held))) for space, held in records.items()}
    left = list(candidates)
    if spread.group is not None:
        if all(member in had for member in spread.members):
            counts = Counter(broker for member in spread.members for broker in had[member])
        else:
            counts = _since_hints(left, partial(_group_tally, spread.group), tallied)
        left = _apart(spread, left, counts)
    if spread.evenly:
        own = had.get(spread.namespace)
        if own is None:
            own = _since_hints(left, partial(_even_tally, spread.namespace), tallied)
        left = _fewest(left, own)
    return left


def _apart(spread: Spread, left: list[Candidate], counts: Counter[str]) -> list[Candidate]:
    if spread.domains:
        sums = Counter[str]()
        for each in left:
            sums[spread.domain_of(each.broker)] += counts[each.broker]
        least = min((sums[spread.domain_of(each.broker)] for each in left), default=0)
        left = [each for each in left if sums[spread.domain_of(each.broker)] == least]
    return _fewest(left, counts)


def _fewest(left: list[Candidate], counts: Counter[str]) -> list[Candidate]:
    least = min((counts[each.broker] for each in left), default=0)
    return [each for each in left if counts[each.broker] == least]


def _since_hints(
    left: Iterable[Candidate], tally: Callable[[str], str], tallied: Mapping[str, int]
) -> Counter[str]:
    return Counter({each.broker: tallied.get(tally(each.broker), 0) for each in left})


def _holder(record: Record) -> str | None:
    """The broker that has the bundle, or will have it after the hand-over that is under way."""
    return record.destination or record.owner


def _even_tally(namespace: str, broker: str) -> str:
    return f"n {namespace} {broker}"


def _group_tally(group: str, broker: str) -> str:
    return f"g {group} {broker}"
