"""A case of Pulsar's recorded decisions becomes views; the answer has the form of the recording.

The order of Java's maps is passed in as the order of rows. Where trimtab remembers otherwise on
purpose, Pulsar's memory is kept here and passed in, so that the rest can be compared decision for
decision: AvgShedder's plan is keyed by a bundle's numbers, not its name (`ValueKeyedPlan`, fed with
the moves that trimtab's own AvgShedder chose), and its hits outlive their brokers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import Any, Final

import numpy as np

from tests.support.javaish import ConcurrentHashMap, HashMap, shedding_order
from trimtab import averages
from trimtab.hits import Hits
from trimtab.load import percentages, unweighted_usage, usage
from trimtab.model import HashRange
from trimtab.placement import PLACERS
from trimtab.placement.least_resource_usage import LeastResourceUsageHistory
from trimtab.placement.request import Projection
from trimtab.placement.round_robin import RoundRobinHistory
from trimtab.plan import Shed
from trimtab.ring import bundle_at, equal_edges, position
from trimtab.settings import Settings, catalogue
from trimtab.shedding import SHEDDERS
from trimtab.shedding.avg import AvgHistory
from trimtab.shedding.threshold import ThresholdHistory
from trimtab.view import Brokers, Bundles, View, namespaces_of

Json = dict[str, Any]

RESOURCES: Final = ("cpu", "memory", "directMemory", "bandwidthIn", "bandwidthOut")
FOUR: Final = ("msgRateIn", "msgRateOut", "msgThroughputIn", "msgThroughputOut")
DEFAULTS: Final = dict(zip(FOUR, averages.DEFAULT_STATS, strict=True))
UNKNOWN_BUNDLE: Final = {"shortTerm": DEFAULTS, "longTerm": DEFAULTS}
KEYS: Final = frozenset(
    key
    for _, _, known in catalogue()
    if known.alias is not None
    for key in (known.alias.key, known.alias.misspelt)
    if key is not None
)


def answer(case: Json) -> Json:
    """What trimtab decides; KeyError for an operation or strategy that it does not have."""
    return {"id": case["id"], "op": case["op"], **OPERATIONS[case["op"]](case)}


def supported(case: Json) -> bool:
    """Whether `answer` knows the case's operation and strategy."""
    match case["op"]:
        case "shed":
            return case["strategy"] in _SHEDDERS
        case "place":
            return case["strategy"] in _PLACERS
        case "resource":
            return "broker" in case
    return case["op"] in OPERATIONS


def _rounds(case: Json) -> list[Json]:
    rounds: list[Json] = case.get("rounds", [case])
    return rounds


def _settings(case: Json, turn: Json) -> Settings:
    conf = {**case.get("conf", {}), **(turn.get("conf", {}) if turn is not case else {})}
    return Settings.parse({key: value for key, value in conf.items() if key in KEYS})


def _numbers(source: Json, keys: Sequence[str]) -> list[float]:
    return [float(source.get(key, 0.0)) for key in keys]


def _percent(broker: Json) -> np.ndarray:
    given = [broker.get(key) or {} for key in RESOURCES]
    used = np.array([float(resource.get("usage", 0.0)) for resource in given])
    limit = np.array([float(resource.get("limit", 0.0)) for resource in given])
    return percentages(used, limit)


def _listed(broker: Json) -> list[str]:
    listed: list[str] = broker["bundles"] if "bundles" in broker else [*broker.get("lastStats", {})]
    return list(dict.fromkeys(listed))


def _aggregated(broker: Json) -> Json:
    """A broker with only ``lastStats``: Pulsar sums them up itself."""
    if "bundles" in broker or "lastStats" not in broker:
        return broker
    stats = [*broker["lastStats"].values()]
    totals = {key: sum_in_order(s.get(key, 0.0) for s in stats) for key in FOUR}
    return {**broker, **totals, "numTopics": sum(int(s.get("topics", 0)) for s in stats)}


def sum_in_order(values: Iterable[float]) -> float:
    """Java's sum: one by one, where Python's `sum` may compensate."""
    total = 0.0
    for value in values:
        total += value
    return total


def _brokers(brokers: Mapping[str, Json], order: Iterable[str]) -> Brokers:
    names = tuple(order)
    given = [_aggregated(brokers[name]) for name in names]
    return Brokers(
        names=names,
        resources=np.array([_percent(broker) for broker in given]).reshape(-1, 5).T,
        traffic=np.array([_numbers(broker, FOUR) for broker in given]).reshape(-1, 4).T,
        topics=np.array([int(broker.get("numTopics", 0)) for broker in given], dtype=np.int64),
        listed=np.array([len(_listed(broker)) for broker in given], dtype=np.int64),
        available=np.ones(len(names), dtype=np.bool_),
    )


def _view(
    turn: Json, brokers: Brokers, order: Iterable[str], movable: Callable[[str], bool]
) -> View:
    """The bundles that some broker lists, those of ``order`` first and in that order."""
    row_of = {name: row for row, name in enumerate(brokers.names)}
    owner = {
        bundle: row_of[name]
        for name, broker in turn["brokers"].items()
        for bundle in _listed(broker)
    }
    names = [b for b in dict.fromkeys([*order, *owner]) if b in owner]
    known = turn.get("bundles", {})
    given = [known.get(name, UNKNOWN_BUNDLE) for name in names]
    owners = np.array([owner[name] for name in names], dtype=np.int64)
    return View(
        cluster="parity",
        brokers=brokers,
        bundles=Bundles(
            names=tuple(names),
            namespace=namespaces_of(names),
            owner=owners,
            short=np.array([_numbers(b["shortTerm"], FOUR) for b in given]).reshape(-1, 4).T,
            long=np.array([_numbers(b["longTerm"], FOUR) for b in given]).reshape(-1, 4).T,
            topics=np.array([int(b.get("topics", 0)) for b in given], dtype=np.int64),
            epoch=np.zeros((2, len(names)), dtype=np.int64),
            movable=np.array([n in known and movable(n) for n in names], dtype=np.bool_),
        ),
        intended=owners,
    )


@dataclass
class LoadData:
    """The order of LoadData's maps, which live on when a case updates its data in place."""

    in_place: bool
    brokers: HashMap = field(default_factory=ConcurrentHashMap)
    bundles: HashMap = field(default_factory=ConcurrentHashMap)

    def update(self, turn: Json) -> None:
        if not self.in_place:
            self.brokers, self.bundles = ConcurrentHashMap(), ConcurrentHashMap()
        for order, keys in (
            (self.bundles, turn.get("bundles", {})),
            (self.brokers, turn["brokers"]),
        ):
            for key in keys:
                order.put(key)
            order.retain(keys)


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
        # Updated in place, a key that changed its numbers is never found in the map again.
        return not self.in_place or (key in self.now and _value(self.now[key]) == value)


def _value(bundle: Json) -> tuple[Any, ...]:
    fours = [bundle["shortTerm"], bundle["longTerm"]]
    samples = [(four.get("numSamples", 0), four.get("maxSamples")) for four in fours]
    return (*(tuple(_numbers(four, FOUR)) for four in fours), *samples, bundle.get("topics", 0))


class _Plain:
    """A shedder without a history over a case's rounds."""

    def __init__(self, name: str, case: Json) -> None:
        self._shed = SHEDDERS[name]
        self._load = LoadData(case.get("inPlace", False))

    def run(self, case: Json, turn: Json) -> Json:
        self._load.update(turn)
        settings = _settings(case, turn)
        order = shedding_order(self._load.bundles)
        brokers = _brokers(turn["brokers"], self._load.brokers)
        view = _view(turn, brokers, order, _may_shed(turn, settings, order))
        sheds, _ = self._shed(view, None, settings)
        trace = {"brokerOrder": list(brokers.names), "bundleOrder": order}
        return {"unload": _unload(view, sheds), "trace": trace}


class _Threshold:
    """ThresholdShedder over a case's rounds."""

    def __init__(self, case: Json) -> None:
        self._notified = case.get("notifyActive", True)
        self._load = LoadData(case.get("inPlace", False))
        self._history = ThresholdHistory()

    def run(self, case: Json, turn: Json) -> Json:
        self._load.update(turn)
        settings = _settings(case, turn)
        brokers = _brokers(turn["brokers"], self._load.brokers)
        order = shedding_order(self._load.bundles)
        view = _view(turn, brokers, order, _may_shed(turn, settings, order))
        past = self._history.usage
        if self._notified:
            active = set(turn["activeBrokers"] if "activeBrokers" in turn else turn["brokers"])
            past = {name: value for name, value in past.items() if name in active}
        sheds, history = SHEDDERS["threshold"](view, ThresholdHistory(past), settings)
        self._history = ThresholdHistory({**past, **history.usage})
        return {
            "unload": _unload(view, sheds),
            "trace": {
                "brokerOrder": list(brokers.names),
                "bundleOrder": order,
                "usage": self._history.usage,
            },
        }


class _Avg:
    """AvgShedder over a case's rounds, with Pulsar's memory of its plan."""

    def __init__(self, case: Json) -> None:
        in_place = case.get("inPlace", False)
        self._load = LoadData(in_place)
        self._scores = HashMap()
        self.plan = ValueKeyedPlan(in_place)
        self.history = AvgHistory()
        self.by_name: dict[str, str] = {}

    def run(self, case: Json, turn: Json) -> Json:
        self._load.update(turn)
        self.plan.observe(turn.get("bundles", {}))
        settings = _settings(case, turn)
        self._scores.retain(())
        for name in self._load.brokers:
            self._scores.put(name)
        brokers = _brokers(turn["brokers"], self._scores)
        order = shedding_order(self._load.bundles)
        view = _view(turn, brokers, order, _may_shed(turn, settings, order))
        scores = usage(brokers.resources, settings.weights) * 100
        sheds, history = SHEDDERS["avg"](view, self.history, settings)
        # Pulsar keeps the hits of brokers that left, until a round in which no pair stands apart.
        apart = scores.size and scores.max() - scores.min() >= settings.avg.low_threshold
        past = self.history if apart else AvgHistory()
        low = Hits({**_of_absent(past.low, brokers), **history.low.counts})
        high = Hits({**_of_absent(past.high, brokers), **history.high.counts})
        self.history = AvgHistory(low, high, history.targets)
        names = view.brokers.names
        for shed in sheds:
            assert shed.destination is not None
            self.plan.put(view.bundles.names[shed.bundle], names[shed.destination])
        answered: Json = {
            "unload": _unload(view, sheds),
            "dest": {b: self.select(view, b, settings) for b in sorted(self.history.targets)},
            "byName": dict(sorted(self.history.targets.items())),
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
        placer = PLACERS["avg"](view, Projection(view), history, settings)
        best = placer.best(bundle, _rows(view, names)).tolist()
        if target is not None and [view.brokers.names[row] for row in best] == [target]:
            return target
        return {"random": True, "candidates": sorted(names)}


def _of_absent(hits: Hits, brokers: Brokers) -> dict[str, int]:
    return {name: count for name, count in hits.counts.items() if name not in brokers.names}


def _rows(view: View, names: Iterable[str]) -> np.ndarray:
    row_of = {name: row for row, name in enumerate(view.brokers.names)}
    return np.array([row_of[name] for name in names if name in row_of], dtype=np.int64)


def _may_shed(turn: Json, settings: Settings, order: Iterable[str]) -> Callable[[str], bool]:
    grace_ms = settings.round.grace_period * 1000
    recent = {b for b, ago in turn.get("recentlyUnloaded", {}).items() if ago <= grace_ms}
    allowed = set(order) - recent
    return allowed.__contains__


def _unload(view: View, sheds: Sequence[Shed]) -> dict[str, list[str]]:
    unload: dict[str, list[str]] = {}
    for shed in sheds:
        source = view.brokers.names[shed.source]
        unload.setdefault(source, []).append(view.bundles.names[shed.bundle])
    return dict(sorted(unload.items()))


_SHEDDERS: Final[dict[str, Callable[[Json], Any]]] = {
    "ThresholdShedder": _Threshold,
    "OverloadShedder": partial(_Plain, "overload"),
    "UniformLoadShedder": partial(_Plain, "uniform"),
    "AvgShedder": _Avg,
}


def _shed(case: Json) -> Json:
    shedder = _SHEDDERS[case["strategy"]](case)
    return {"rounds": [shedder.run(case, turn) for turn in _rounds(case)]}


_PLACERS: Final[dict[str, tuple[str, Any]]] = {
    "LeastLongTermMessageRate": ("least-long-term-rate", None),
    "LeastResourceUsageWithWeight": ("least-resource-usage", LeastResourceUsageHistory()),
    "AvgShedder": ("avg", AvgHistory()),
    "RoundRobinBrokerSelector": ("round-robin", RoundRobinHistory()),
}


def _place(case: Json) -> Json:
    if case["strategy"] == "AvgShedder":
        return _place_planned(case)
    if case["strategy"] == "RoundRobinBrokerSelector":
        return _place_in_turn(case)
    name, history = _PLACERS[case["strategy"]]
    answers, last = [], None
    for turn in _rounds(case):
        last = turn if "brokers" in turn else last
        assert last is not None
        settings = _settings(case, turn)
        view, projection = _placing_view(last)
        names = HashMap(turn.get("candidates", view.brokers.names))
        rows = _rows(view, names)
        if not rows.size:
            # The load manager never asks with no candidates; Pulsar's strategies then say nobody.
            if isinstance(history, LeastResourceUsageHistory):
                live = {n: u for n, u in history.usage.items() if n in view.brokers.names}
                history = LeastResourceUsageHistory(live)
            trace = {"candidateOrder": [], "usage": _usage(history)}
            answers.append({"present": False, "best": [], "trace": trace})
            continue
        placer = PLACERS[name](view, projection, history, settings)
        best, history = placer.best(turn.get("bundle", ""), rows), placer.remembered()
        answers.append(
            {
                "present": True,
                "best": sorted(view.brokers.names[row] for row in best.tolist()),
                "trace": {
                    "candidateOrder": list(names),
                    "usage": _usage(history),
                },
            }
        )
    return {"rounds": answers}


def _place_in_turn(case: Json) -> Json:
    """Round robin: candidates keep the order in which the case lists them."""
    history, answers, view = RoundRobinHistory(), [], None
    for turn in _rounds(case):
        if "brokers" in turn:
            view, _ = _placing_view(turn)
        assert view is not None
        settings, names = _settings(case, turn), view.brokers.names
        rows = _rows(view, turn.get("candidates", names))
        placer = PLACERS["round-robin"](view, Projection(view), history, settings)
        (best,) = placer.best(turn.get("bundle", ""), rows).tolist()
        answers.append({"choice": names[best]})
        history = placer.remembered()
    return {"rounds": answers}


def _usage(history: object) -> dict[str, float]:
    return history.usage if isinstance(history, LeastResourceUsageHistory) else {}


def _placing_view(turn: Json) -> tuple[View, Projection]:
    """A snapshot for placement: sums run in the order in which a broker lists its bundles."""
    brokers = dict(turn["brokers"])
    known = dict(turn.get("bundles", {}))
    for name, broker in brokers.items():
        if "timeAverage" in broker:
            given = broker["timeAverage"]
            long = {"msgRateIn": given.get("longTermMsgRateIn", 0.0)}
            long["msgRateOut"] = given.get("longTermMsgRateOut", 0.0)
            known[f"time/average/{name}"] = {"shortTerm": {}, "longTerm": long}
            brokers[name] = {**broker, "bundles": [f"time/average/{name}"]}
    columns = _brokers(turn["brokers"], ConcurrentHashMap(brokers))
    view = _view({"brokers": brokers, "bundles": known}, columns, (), lambda _: True)
    projection = Projection(view)
    for row, name in enumerate(columns.names):
        waiting = brokers[name].get("preallocated", {})
        for bundle in ConcurrentHashMap(waiting):
            rate_in, rate_out = _numbers(waiting[bundle]["longTerm"], FOUR[:2])
            projection.arriving[row] += rate_in + rate_out
    return view, projection


def _place_planned(case: Json) -> Json:
    avg = _Avg({})
    history = [avg.run(case, turn) for turn in case.get("history", ())]
    answers, view = [], None
    for turn in _rounds(case):
        if "brokers" in turn:
            view, _ = _placing_view(turn)
            avg.plan.observe(turn.get("bundles", {}))
        assert view is not None
        settings, bundle = _settings(case, turn), turn.get("bundle", "")
        answers.append({"choice": avg.select(view, bundle, settings, turn.get("candidates"))})
    return {"history": history, "rounds": answers} if "history" in case else {"rounds": answers}


def _resource(case: Json) -> Json:
    settings = _settings(case, case)
    percent = _percent(case["broker"])
    column = percent[:, np.newaxis]
    return {
        **_totals(case["broker"]),
        "percent": dict(zip(RESOURCES, percent.tolist(), strict=True)),
        "max": float(unweighted_usage(column)[0]),
        "maxWithWeight": float(usage(column, settings.weights)[0]),
    }


def _totals(broker: Json) -> Json:
    if _aggregated(broker) is broker:
        return {}
    stats = broker["lastStats"].values()
    counts = {"numConsumers": "consumerCount", "numProducers": "producerCount"}
    totals = {name: sum(int(s.get(key, 0)) for s in stats) for name, key in counts.items()}
    whole = _aggregated(broker)
    kept = {key: whole[key] for key in (*FOUR, "numTopics")}
    return {"totals": {**totals, **kept, "numBundles": len(stats)}}


def _bundle_data(case: Json) -> Json:
    start = np.array(_numbers(case.get("defaults", DEFAULTS), FOUR))[:, np.newaxis]
    terms = {
        "shortTerm": (start, np.zeros(1, dtype=np.int64), case["numShort"]),
        "longTerm": (start, np.zeros(1, dtype=np.int64), case["numLong"]),
    }
    answers = []
    for stats in case["samples"]:
        new, mask = np.array(_numbers(stats, FOUR))[:, np.newaxis], np.array([True])
        answered: Json = {"topics": stats.get("topics", 0)}
        for term, (values, n, most) in terms.items():
            values, n = averages.sample(values, n, new, mask, most)
            terms[term] = (values, n, most)
            numbers = dict(zip(FOUR, values[:, 0].tolist(), strict=True))
            answered[term] = {"maxSamples": most, "numSamples": int(n[0]), **numbers}
        answers.append(answered)
    return {"samples": answers}


def _hash(case: Json) -> Json:
    return {"positions": {topic: f"0x{position(topic):08x}" for topic in case["topics"]}}


def _bundle_of(case: Json) -> Json:
    given = case.get("boundaries")
    edges = [int(edge, 16) for edge in given] if given else equal_edges(case["numBundles"])
    return {
        # The recording leaves out longer lists.
        "bundles": [str(HashRange(*pair)) for pair in pairwise(edges) if len(edges) <= 65],
        "of": {
            topic: {
                "topic": topic,
                "bundle": f"{case['namespace']}/{bundle_at(edges, position(topic))}",
            }
            for topic in case["topics"]
        },
    }


OPERATIONS: Final[dict[str, Callable[[Json], Json]]] = {
    "shed": _shed,
    "place": _place,
    "resource": _resource,
    "bundle_data": _bundle_data,
    "hash": _hash,
    "bundle_of": _bundle_of,
}
