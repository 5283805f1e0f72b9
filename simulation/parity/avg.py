"""AvgShedder over a case's rounds, with Pulsar's memory of its plan.

Where trimtab remembers differently on purpose, Pulsar's memory is kept here and passed in, so that
all other decisions can be compared. The plan is keyed by a bundle's numbers, not its name
(`ValueKeyedPlan`, fed with the moves that trimtab's own AvgShedder chose), and hits outlive their
brokers.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from simulation.parity.cases import (
    FOUR,
    UNKNOWN_BUNDLE,
    Json,
    LoadData,
    brokers_of,
    numbers,
    rows_of,
    settings_of,
    view_of,
)
from simulation.parity.java_maps import HashMap, shedding_order
from simulation.parity.unloads import dropped_by_grace, may_shed, unload_of
from trimtab.filters.request import Projection
from trimtab.hits import HitCounts
from trimtab.load import usage
from trimtab.placement import PLACERS
from trimtab.settings import Settings
from trimtab.shedding import SHEDDERS
from trimtab.shedding.avg import AvgHistory
from trimtab.view import Brokers, View


@dataclass
class ValueKeyedPlan:
    """AvgShedder's ``bundleBrokerMap``: bundles with equal numbers share an entry."""

    in_place: bool
    entries: dict[Any, tuple[str, str]] = field(default_factory=dict)
    now: Json = field(default_factory=dict)

    def observe(self, bundles: Json) -> None:
        self.now = bundles

    def put(self, bundle: str, broker: str) -> None:
        value = _value(self.now[bundle])
        key, _ = self.entries.get(value, (bundle, ""))
        self.entries[value] = (key if self._alive(value, key) else bundle, broker)

    def get(self, bundle: str) -> str | None:
        value = _value(self.now.get(bundle, UNKNOWN_BUNDLE))
        key, broker = self.entries.get(value, ("", ""))
        return broker if broker and self._alive(value, key) else None

    def _alive(self, value: Any, key: str) -> bool:
        # Keys are updated in place: one that changed its numbers is never found in the map again.
        return not self.in_place or (key in self.now and _value(self.now[key]) == value)


def _value(bundle: Json) -> tuple[Any, ...]:
    fours = [bundle["shortTerm"], bundle["longTerm"]]
    samples = [(four.get("numSamples", 0), four.get("maxSamples")) for four in fours]
    return (*(tuple(numbers(four, FOUR)) for four in fours), *samples, bundle.get("topics", 0))


class Avg:
    """AvgShedder over a case's rounds, with Pulsar's memory of its plan."""

    def __init__(self, case: Json) -> None:
        in_place = case.get("inPlace", False)
        self._load = LoadData(in_place)
        self._scores = HashMap()
        self.plan = ValueKeyedPlan(in_place)
        self.history = AvgHistory()

    def run(self, case: Json, turn: Json) -> Json:
        self._load.update(turn)
        self.plan.observe(turn.get("bundles", {}))
        settings = settings_of(case, turn)
        self._scores.retain(())
        for name in self._load.brokers:
            self._scores.put(name)
        brokers = brokers_of(turn["brokers"], self._scores)
        order = shedding_order(self._load.bundles)
        view = view_of(turn, brokers, order, may_shed(case, turn, settings, order))
        scores = usage(brokers.resources, settings.weights) * 100
        sheds, history = SHEDDERS["avg"](view, self.history, settings)
        # Pulsar keeps the hits of brokers that left, until a round in which no pair stands apart.
        apart = scores.size and scores.max() - scores.min() >= settings.avg.low_threshold
        past = self.history if apart else AvgHistory()
        low = HitCounts({**_of_absent(past.low, brokers), **history.low.counts})
        high = HitCounts({**_of_absent(past.high, brokers), **history.high.counts})
        self.history = AvgHistory(low, high, history.targets)
        names = view.brokers.names
        for shed in sheds:
            assert shed.destination is not None
            self.plan.put(view.bundles.names[shed.bundle], names[shed.destination])
        answered: Json = {
            **dropped_by_grace(case, turn, settings),
            "unload": unload_of(view, sheds),
            "dest": {b: self.select(view, b, settings) for b in sorted(self.history.targets)},
            "trace": {
                "brokerOrder": list(self._load.brokers),
                "bundleOrder": order,
                "scoreOrder": list(names),
                "scores": dict(zip(names, scores.tolist(), strict=True)),
                "hitHigh": self.history.high.counts,
                "hitLow": self.history.low.counts,
            },
        }
        if "select" in turn:
            answered["select"] = {
                question["bundle"]: self.select(
                    view, question["bundle"], settings, question.get("candidates")
                )
                for question in turn["select"]
            }
        return answered

    def select(
        self, view: View, bundle: str, settings: Settings, candidates: list[str] | None = None
    ) -> str | Json:
        target = self.plan.get(bundle)
        history = replace(self.history, targets={} if target is None else {bundle: target})
        names = list(view.brokers.names) if candidates is None else candidates
        placer = PLACERS["avg"](Projection(view), history, settings)
        best = placer.best(bundle, rows_of(view, names)).tolist()
        if target is not None and [view.brokers.names[row] for row in best] == [target]:
            return target
        return {"random": True, "candidates": sorted(names)}


def _of_absent(hits: HitCounts, brokers: Brokers) -> dict[str, int]:
    return {name: count for name, count in hits.counts.items() if name not in brokers.names}
