"""A view as it would be if some bundles were on other brokers than they are.

traffic  moves with the bundle, as last reported
resource = as reported + cost of a byte on that kind of broker * traffic that comes or goes
The cost is the slope of what the brokers of a kind report, so what a broker uses without any bundle
stays with it. Heap and direct memory stay too: they do not follow the traffic.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Final

import numpy as np

from trimtab.arrays import (
    BANDWIDTH_IN,
    BANDWIDTH_OUT,
    CPU,
    RATE_IN,
    RATE_OUT,
    THROUGHPUT_IN,
    THROUGHPUT_OUT,
    TOPICS,
    Floats,
    Ints,
)
from trimtab.load_model.resources.costs import Costs, count_reports, keep_kinds, kinds, per_byte
from trimtab.load_model.resources.slopes import MESSAGE_BYTES
from trimtab.names import rows_of
from trimtab.ownership import State
from trimtab.view import Brokers, View
from trimtab.wire.ownership import Record

FOLLOWING: Final = (CPU, BANDWIDTH_IN, BANDWIDTH_OUT)
"""Rows of ``resources`` that follow traffic, each with its own Costs."""

NOTHING_LEARNT: Final = (Costs(),) * len(FOLLOWING)


def learn_costs(past: tuple[Costs, ...], brokers: Brokers, kept: float) -> tuple[Costs, ...]:
    """The costs of traffic with these reports counted; earlier ones keep ``kept`` of their weight.

    Kinds that no broker has any more are forgotten.
    """
    names, kind = kinds(brokers.limits)
    carried = _carried(brokers.traffic)
    found = []
    for resource, costs in zip(FOLLOWING, past, strict=True):
        for number, name in enumerate(names):
            here = kind == number
            costs = count_reports(
                costs, name, brokers.resources[resource, here], carried[here], kept
            )
        # A report so large that the sums overflow must not be remembered.
        finite = [name for name in names if np.isfinite(costs.sums[name]).all()]
        found.append(keep_kinds(costs, finite))
    return tuple(found)


def standing(elsewhere: Mapping[str, str], view: View, brokers: Collection[str]) -> dict[str, str]:
    """The entries of ``elsewhere`` (bundle to broker) that still differ from the true view: the
    bundle exists, is not on that broker, and the broker is one of ``brokers``."""
    names, bundles = view.brokers.names, view.bundles
    rows = rows_of(bundles.names, elsewhere)
    # A move under way may fail: neither its source nor its destination is certain yet.
    home = {
        bundles.names[row]: names[bundles.owner[row]]
        if bundles.owner[row] == view.intended[row]
        else ""
        for row in rows
    }
    return {
        bundle: broker
        for bundle, broker in elsewhere.items()
        if broker in brokers
        and home.get(bundle) != broker
        and (bundle in home or _recorded(view.records.get(bundle)))
    }


def overlay_view(view: View, elsewhere: Mapping[str, str], costs: tuple[Costs, ...]) -> View:
    """The view with each bundle of ``elsewhere`` owned by that broker, if both are in view."""
    rows, places = _places(view, elsewhere)
    if not rows.size:
        return view
    bundles = view.bundles
    owner, intended = bundles.owner.copy(), view.intended.copy()
    owner[rows] = intended[rows] = places
    brokers = _shifted(view, rows, places, costs)
    return replace(view, brokers=brokers, bundles=replace(bundles, owner=owner), intended=intended)


def _places(view: View, elsewhere: Mapping[str, str]) -> tuple[Ints, Ints]:
    """Bundle rows, and the broker row of each."""
    row_of = {name: row for row, name in enumerate(view.brokers.names)}
    names = view.bundles.names
    rows = np.array(rows_of(names, elsewhere), dtype=np.int64)
    places = [row_of.get(elsewhere[names[row]], -1) for row in rows.tolist()]
    found: Ints = np.array(places, dtype=np.int64)
    return rows[found >= 0], found[found >= 0]


def _shifted(view: View, rows: Ints, places: Ints, costs: tuple[Costs, ...]) -> Brokers:
    """The brokers with bundle ``rows`` taken from their owners and given to ``places``."""
    brokers, bundles, n = view.brokers, view.bundles, len(view.brokers.names)
    source = bundles.owner[rows]

    def gained(column: Floats) -> Floats:
        arrivals, departures = np.bincount(places, column, n), np.bincount(source, column, n)
        return (arrivals - departures).astype(np.float64)

    stats = bundles.stats[:, rows]
    carried = gained(_carried(stats))
    used = np.zeros_like(brokers.resources)
    for resource, each in zip(FOLLOWING, costs, strict=True):
        used[resource] = _per_byte(each, brokers) * carried
    traffic = np.stack([gained(row) for row in stats])
    topics = gained(bundles.counts[TOPICS, rows].astype(np.float64)).astype(np.int64)
    listed = gained(np.ones(rows.size)).astype(np.int64)
    return replace(
        brokers,
        resources=np.maximum(brokers.resources + used, 0.0),
        traffic=np.maximum(brokers.traffic + traffic, 0.0),
        smoothed_resources=np.maximum(brokers.smoothed_resources + used, 0.0),
        smoothed_traffic=np.maximum(brokers.smoothed_traffic + traffic, 0.0),
        topics=np.maximum(brokers.topics + topics, 0),
        listed=np.maximum(brokers.listed + listed, 0),
    )


def _per_byte(costs: Costs, brokers: Brokers) -> Floats:
    """(n,) points of a resource that a byte/s uses on each broker."""
    names, kind = kinds(brokers.limits)
    _, first = np.unique(kind, return_index=True)
    return per_byte(costs, names, brokers.limits[:, first])[kind]


def _carried(traffic: Floats) -> Floats:
    """The bytes/s in four rows of traffic, with messages/s converted to bytes/s."""
    messages = traffic[RATE_IN] + traffic[RATE_OUT]
    carried: Floats = traffic[THROUGHPUT_IN] + traffic[THROUGHPUT_OUT] + MESSAGE_BYTES * messages
    return carried


def _recorded(record: Record | None) -> bool:
    return record is not None and record.state is not State.DELETED
