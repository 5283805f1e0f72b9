"""Lookups between two rounds choose from the brokers that a round's filters would leave."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.support.clusters import Broker, Bundle, view_of
from trimtab.cluster.placement_hints import hints
from trimtab.filters import anti_affinity, find_permitted, narrow
from trimtab.filters.request import Projection
from trimtab.filters.room import evenness
from trimtab.model import Epoch, namespace_of
from trimtab.ownership import State
from trimtab.policies import Isolation, Policies
from trimtab.settings import Settings
from trimtab.state.round_state import Histories
from trimtab.store.spreading import Spread, narrow_spread, spread_of
from trimtab.view import View
from trimtab.wire.hints import Hints
from trimtab.wire.ownership import Record

BROKERS = tuple("abcdef")
NAMESPACES = ("t/one", "t/two", "t/three", "t/vip", "pulsar/system")
SPANS = [f"0x{i:08x}_0x{i + 1:08x}" for i in range(6)]
BUNDLES = [f"{namespace}/{span}" for namespace in NAMESPACES for span in SPANS]
POLICIES = Policies(
    isolation={"p": Isolation(namespaces=("t/vip",), primary=("a", "b"))},
    groups={"t/one": "G", "t/two": "g", "t/vip": "g", "t/three": " "},
    domains={"a": "x", "b": "y", "c": "x", "d": "y", "e": "x"},
)

owners = st.dictionaries(st.sampled_from(BUNDLES), st.sampled_from(BROKERS), max_size=25)


@dataclass
class Place:
    """A cluster between two rounds: where bundles are, and what the last round's hints say."""

    settings: Settings
    hints: Hints
    held: dict[str, str]

    def spread(self, namespace: str) -> Spread:
        group = POLICIES.group_of(namespace)
        return spread_of(namespace, self.hints, group, self.hints.groups.get(group or "", ()))

    def by_lookup(self, namespace: str) -> set[str]:
        spread = self.spread(namespace)
        records = {
            each: [record_of(b, o) for b, o in self.held.items() if namespace_of(b) == each]
            for each in spread.namespaces
        }
        found = narrow_spread(spread, self.hints.candidates_for(namespace), records, {})
        return {candidate.broker for candidate in found}

    def by_round(self, namespace: str) -> set[str]:
        view = view_with(self.held)
        request = Projection(view).request_for(namespace)
        left = narrow(request, find_permitted(request), (anti_affinity, evenness), self.settings)
        return {view.brokers.names[row] for row in np.flatnonzero(left).tolist()}


def record_of(bundle: str, owner: str) -> Record:
    return Record(state=State.OWNED, epoch=Epoch(1, 1), owner=owner, by=bundle)


def view_with(held: Mapping[str, str]) -> View:
    brokers = {
        name: Broker(0.5, [Bundle(name=b) for b, owner in held.items() if owner == name])
        for name in BROKERS
    }
    return view_of(brokers, POLICIES)


def place(before: dict[str, str], *, evenly: bool, by_domain: bool) -> Place:
    """The hints are of the round before anything is placed."""
    settings = Settings.parse(
        {"placement.distribute_evenly": evenly, "placement.failure_domains": by_domain}
    )
    return Place(settings, hints(view_with(before), settings, 1, Histories()), dict(before))


@given(owners, owners, st.sampled_from(NAMESPACES), st.booleans(), st.booleans())
def test_the_choice_is_what_the_filters_of_a_round_would_leave(
    before: dict[str, str], since: dict[str, str], namespace: str, evenly: bool, by_domain: bool
) -> None:
    """Whatever was placed, moved or lost since the hints."""
    here = place(before, evenly=evenly, by_domain=by_domain)
    here.held = since
    assert here.by_lookup(namespace) == here.by_round(namespace)


@given(st.permutations(BUNDLES), st.data())
def test_bundles_placed_one_after_the_other_stay_even_isolated_and_apart(
    order: list[str], data: st.DataObject
) -> None:
    here = place({}, evenly=True, by_domain=False)
    for bundle in order:
        found = here.by_lookup(namespace_of(bundle))
        here.held[bundle] = data.draw(st.sampled_from(sorted(found)))
    assert_even(here.held, "t/three", "cdef")
    assert_even(here.held, "pulsar/system", "cdef")
    assert {here.held[b] for b in BUNDLES if namespace_of(b) == "t/vip"} == {"a", "b"}


def assert_even(held: Mapping[str, str], namespace: str, brokers: str) -> None:
    counts = Counter(held[bundle] for bundle in BUNDLES if namespace_of(bundle) == namespace)
    assert set(counts) <= set(brokers)
    least, most = min(counts[each] for each in brokers), max(counts.values())
    assert most - least <= 1
