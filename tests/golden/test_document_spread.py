"""How a new namespace spreads when rounds place it; tests/agent has the same for lookups.

The documents say "up to 16 brokers" and promise a good distribution without figures: these are
trimtab's.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from tests.support.clusters import Broker, cluster
from tests.support.pulsar import PULSAR
from trimtab.model import NO_EPOCH, HashRange
from trimtab.ownership import Event
from trimtab.reasons import Reason
from trimtab.repair_needs import Need, RepairNeeds
from trimtab.round.decide import repair_only
from trimtab.settings import Settings
from trimtab.state.round_state import RoundState
from trimtab.store.ring import equal_edges, position, row_at


def owners(bundles: int, settings: Settings) -> list[str]:
    """The broker of each bundle of a new namespace, in order, of 16 equal brokers."""
    ranges = [HashRange(*edges) for edges in pairwise(equal_edges(bundles))]
    needs = [Need(f"t/ns/{each}", Event.ASSIGN, Reason.UNOWNED, NO_EPOCH) for each in ranges]
    view = cluster(**{f"b{i:02}": Broker(0.1) for i in range(16)})
    view = replace(view, trouble=RepairNeeds(tuple(needs)))
    plan, _ = repair_only(view, RoundState(), settings, 0, np.random.default_rng(1))
    assert [repair.bundle for repair in plan.repairs] == [need.bundle for need in needs]
    return [repair.broker or "" for repair in plan.repairs]


def topics_by_broker(owners: list[str]) -> list[int]:
    """How many of 1,000 topics each broker serves, ascending."""
    edges = equal_edges(len(owners))
    topics = (f"persistent://my-tenant/my-namespace/topic-{i}" for i in range(1000))
    return sorted(Counter(owners[row_at(edges, position(topic))] for topic in topics).values())


STRATEGIES = pytest.mark.parametrize(
    "settings", [Settings(), Settings.parse(PULSAR)], ids=["trimtab", "pulsar"]
)


@STRATEGIES
def test_16_bundles_are_on_16_brokers(settings: Settings) -> None:
    """Items 002-06 and 002-05: one bundle each."""
    assert len(set(owners(16, settings))) == 16


@STRATEGIES
def test_1000_topics_in_64_bundles_are_on_16_brokers(settings: Settings) -> None:
    """Item 002-07: four bundles and 62.5 topics a broker in the mean; none has twice the mean."""
    found = owners(64, settings)
    assert set(Counter(found).values()) == {4}
    topics = topics_by_broker(found)
    assert (len(topics), sum(topics)) == (16, 1000)
    assert topics[0] >= 40
    assert topics[-1] <= 85
