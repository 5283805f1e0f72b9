"""``split_needed`` and ``split_needed_ext``: the split triggers over a case's rounds.

Pulsar's extensible manager finds the boundary in the same loop, and an exception there ends the
round. trimtab leaves boundaries to the owner; here `_Owner` stands in for it and acts as Pulsar.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from simulation.parity.cases import (
    FOUR,
    Json,
    add_trace,
    brokers_of,
    conf_of,
    counts_of,
    numbers,
    rounds_of,
    settings_of,
    stats_of,
)
from simulation.parity.java_maps import ConcurrentHashMap
from simulation.parity.splits import split_positions
from trimtab.hits import HitCounts
from trimtab.model import parse_bundle
from trimtab.plan import SplitWish
from trimtab.reasons import Reason
from trimtab.settings import Settings, SplitSettings
from trimtab.splitting.triggers import TRIGGERS, instantaneous
from trimtab.splitting.triggers.instantaneous import SplitHistory
from trimtab.splitting.triggers.limits import find_judged
from trimtab.view import Bundles, View, namespaces_of

_REASONS: Final = {
    Reason.TOO_MANY_TOPICS: "Topics",
    Reason.TOO_MANY_SESSIONS: "Sessions",
    Reason.TOO_MANY_MESSAGES: "MsgRate",
    Reason.TOO_MUCH_TRAFFIC: "Bandwidth",
}
_EMPTY_CHILD: Final = (
    "java.lang.IllegalArgumentException: Cannot create bundle object for an empty key range"
)


def split_needed(case: Json) -> Json:
    """The bundles that Pulsar's leader splits, each with the broker that reports it."""
    return {"rounds": [add_trace(case, _long_term(case, turn)) for turn in rounds_of(case)]}


def _long_term(case: Json, turn: Json) -> Json:
    order = list(ConcurrentHashMap(turn["brokers"]))
    view = _view(case, turn, {name: turn["brokers"][name] for name in order})
    divides, _ = TRIGGERS["long-term"](view, None, _settings(case, turn))
    names, owner = view.bundles.names, view.bundles.owner.tolist()
    split = {names[divide.bundle]: order[owner[divide.bundle]] for divide in divides}
    return {"split": dict(sorted(split.items())), "trace": {"brokerOrder": order}}


def split_needed_ext(case: Json) -> Json:
    """The own bundles that a broker of Pulsar's extensible manager splits."""
    answers, history = [], SplitHistory()
    for turn in rounds_of(case):
        answered, history = _instantaneous(case, turn, history)
        answers.append(answered)
    return {"rounds": answers}


def _instantaneous(case: Json, turn: Json, history: SplitHistory) -> tuple[Json, SplitHistory]:
    view = _view(case, turn, {"this-broker:8080": {"lastStats": turn["stats"]}})
    settings = _settings(case, turn)
    owner = _Owner(case, turn, view.bundles.names)
    divides, after = instantaneous.split(view, history, settings, owner.divisible)
    capped = 0 < settings.split.max_per_round == len(divides)
    last, hits = divides[-1].bundle if capped else len(view.bundles.names) - 1, after.hits.counts
    if owner.ended is not None:
        last, divides = owner.ended, ()
        later = set(view.bundles.names[last + 1 :])
        hits = {name: n for name, n in hits.items() if name not in later}
        hits |= {name: n for name, n in history.hits.counts.items() if name in later}
    failures = owner.failures + _unasked(view, hits, settings.split, last)
    decisions = [owner.decision(divide) for divide in divides]
    return {
        "decisions": sorted(decisions, key=lambda decision: decision["bundle"]),
        "counter": {"Failure.Unknown": failures} if failures else {},
        "hitCounts": dict(sorted(hits.items())),
        **({} if owner.ended is None else {"error": _EMPTY_CHILD}),
    }, SplitHistory(HitCounts(hits))


def _unasked(view: View, hits: Mapping[str, int], limits: SplitSettings, last: int) -> int:
    """Failures up to row ``last`` that need no boundary: small ranges, unknown sizes."""
    failures = 0
    for row in np.flatnonzero(find_judged(view.bundles)[: last + 1]).tolist():
        name = view.bundles.names[row]
        namespace, (low, high) = parse_bundle(name)
        unknown = hits.get(name, 0) > limits.hits and namespace not in view.sizes
        failures += unknown or high - low <= 1
    return failures


@dataclass
class _Owner:
    """Finds boundaries; anything but one for each bundle is a failure."""

    case: Json
    turn: Json
    names: Sequence[str]
    children: dict[int, list[str]] = field(default_factory=dict)
    failures: int = 0
    ended: int | None = None
    """The row whose boundary made an empty child: an exception that Pulsar does not catch."""

    def divisible(self, row: int) -> bool:
        if self.ended is not None:
            return False
        found = self._boundaries(self.names[row])
        if len(found.get("boundaries") or ()) != 1:
            self.failures += 1
        elif "splitError" in found:
            self.ended = row
        else:
            self.children[row] = sorted(found["bundles"])
        return row in self.children

    def decision(self, divide: SplitWish) -> Json:
        return {
            "bundle": self.names[divide.bundle],
            "label": "Success",
            "reason": _REASONS[divide.reason],
            "children": self.children[divide.bundle],
        }

    def _boundaries(self, bundle: str) -> Json:
        namespace, parent = parse_bundle(bundle)
        question: Json = {
            "algorithm": settings_of(self.case, self.turn).split.algorithm,
            "namespace": namespace,
            "range": str(parent),
            "topics": self.turn.get("topics", {}).get(bundle, ()),
            "conf": conf_of(self.case, self.turn),
        }
        return split_positions(question)


def _settings(case: Json, turn: Json) -> Settings:
    """Settings with the limit in bytes/s as Pulsar's int product: negative from 2048 MiB/s on."""
    settings = settings_of(case, turn)
    wrapped = (int(settings.split.max_throughput) + 2**31) % 2**32 - 2**31
    return replace(settings, split=replace(settings.split, max_throughput=float(wrapped)))


def _view(case: Json, turn: Json, brokers: Mapping[str, Json]) -> View:
    """Every line of every broker's ``lastStats``, as listed; a bundle may be in two."""
    lines = [
        (row, name, stats)
        for row, broker in enumerate(brokers.values())
        for name, stats in broker.get("lastStats", {}).items()
    ]
    names = tuple(name for _, name, _ in lines)
    namespace, namespaces = namespaces_of(names)
    owner = np.array([row for row, _, _ in lines], dtype=np.int64)
    known = turn.get("bundles", {})
    long = [numbers(known.get(name, {}).get("longTerm", {}), FOUR) for name in names]
    reported = [stats for _, _, stats in lines]
    stats = stats_of(reported)
    splitting = [*case.get("splitting", ()), *turn.get("splitting", ())]
    return View(
        cluster="parity",
        brokers=brokers_of(brokers, brokers),
        bundles=Bundles(
            names=names,
            namespace=namespace,
            namespaces=namespaces,
            owner=owner,
            short=np.zeros((4, len(names))),
            long=np.array(long).reshape(-1, 4).T,
            reported=lambda: stats,
            counts=counts_of(reported),
            movable=np.ones(len(names), dtype=np.bool_),
        ),
        intended=owner,
        sizes={**case.get("namespaceBundles", {}), **turn.get("namespaceBundles", {})},
        splitting=frozenset(_by_prefix(splitting, namespaces)),
    )


def _by_prefix(splitting: Iterable[str], namespaces: Iterable[str]) -> Iterator[str]:
    """Count as Pulsar does, by name prefix: a bundle of ``t/ns10`` counts for ``t/ns1``, too."""
    for bundle in splitting:
        for namespace in namespaces:
            if bundle.startswith(namespace):
                yield f"{namespace}/{parse_bundle(bundle)[1]}"
