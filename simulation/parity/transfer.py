"""``transfer_shed`` and ``topk``: TransferShedder over the turns of a case."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Final

import numpy as np

from simulation.parity.cases import Json, add_trace, conf_of, rounds_of, settings_of
from simulation.parity.filtering import policies_of
from simulation.parity.load_data import (
    NOW_MS,
    Listing,
    PartialSortFailed,
    Reports,
    partial_sort,
    view_of,
)
from simulation.parity.unloads import dropped_by_grace, resting
from trimtab.arrays import Ints
from trimtab.plan import ShedWish
from trimtab.reasons import Reason
from trimtab.settings import Settings
from trimtab.shedding.top_bundles import TopBundles
from trimtab.shedding.transfer import TransferHistory, judge_balance
from trimtab.view import View

_REASONS: Final = {Reason.OVERLOADED: "Overloaded", Reason.UNDERLOADED: "Underloaded"}
_NO_BROKER: Final = "nobody"
_POLICIES: Final = ("groups", "owned", "isolation")


def transfer_shed(case: Json) -> Json:
    shedder = _Transfer()
    return {"rounds": [shedder.run(case, turn) for turn in rounds_of(case)]}


class _Transfer:
    """The state that TransferShedder and the load data store keep from turn to turn."""

    def __init__(self) -> None:
        self._reports = Reports()
        self._history = TransferHistory()
        self._mean = self._deviation = 0.0

    def run(self, case: Json, turn: Json) -> Json:
        settings = _settings(case, turn)
        self._reports.update(turn["brokers"], settings)
        recent, _ = resting(case, turn, settings)
        view, top = self._view(case, turn, recent, settings)
        outcome = judge_balance(view, self._history, settings, top)
        self._history = TransferHistory(outcome.hits)
        if outcome.mean is not None and outcome.deviation is not None:
            self._mean, self._deviation = outcome.mean, outcome.deviation
        sheds = [_decision(view, shed) for shed in outcome.sheds]
        answered = {
            **dropped_by_grace(case, turn, settings),
            "decisions": sorted(sheds, key=_place),
            "counter": {f"Skip.{outcome.skip.value}": 1} if outcome.skip else {},
            "loadAvg": self._mean,
            "loadStd": "NaN" if self._deviation != self._deviation else self._deviation,
            "hitCount": outcome.hits,
            "recentlyUnloadedBrokers": _resting(view, turn, settings),
            "trace": self._reports.trace(),
        }
        return add_trace(case, answered)

    def _view(
        self, case: Json, turn: Json, recent: set[str], settings: Settings
    ) -> tuple[View, Callable[[int], Ints]]:
        obeyed = any(key in case for key in _POLICIES) or case.get("policies", False)
        owner = {b: name for name, held in case.get("owned", {}).items() for b in held}
        available = turn.get("available")
        others = [*(available or ()), *owner.values(), _NO_BROKER]
        brokers = self._reports.brokers(turn["brokers"], others)
        relieved = turn.get("recentlyUnloadedBrokers", {})
        known = brokers.reported_ms > 0
        there = known if available is None else np.isin(brokers.names, available)
        brokers = replace(
            brokers,
            relieved_ms=np.array([_ago(relieved, n) for n in brokers.names], dtype=np.int64),
            # Without policies Pulsar does not ask its filters, and every broker may receive.
            available=there if obeyed else there | known,
            topics=brokers.topics if obeyed else np.full_like(brokers.topics, -1),
        )
        listings, tops = _listings(turn, brokers.names, owner, "owned" not in case)
        view = replace(view_of(brokers, listings, recent), policies=policies_of(case))
        if tops is not None:
            return view, lambda broker: np.array(tops.get(broker, ()), dtype=np.int64)
        return view, _top_bundles(view, settings, settings.transfer.top_bundles).of


def _settings(case: Json, turn: Json) -> Settings:
    debug = bool(conf_of(case, turn).get("loadBalancerDebugModeEnabled", False))
    return settings_of(case, turn).changed(
        {"transfer.credit_swaps": debug, "transfer.checked_swaps": False}
    )


def _ago(given: Mapping[str, int], name: str) -> int:
    return NOW_MS - int(given[name]) if name in given else 0


def _listings(
    turn: Json, names: tuple[str, ...], owner: Mapping[str, str], all_own: bool
) -> tuple[list[Listing], dict[int, list[int]] | None]:
    """Rows of bundles, and each broker's top ones if the case lists them itself."""
    row_of = {name: row for row, name in enumerate(names)}
    unowned = row_of[_NO_BROKER]
    listings: list[Listing] = []
    tops: dict[int, list[int]] = {}
    for name, entries in _given(turn).items():
        for bundle, stats in entries if name in row_of else ():
            lister, holder = row_of[name], owner.get(bundle, _NO_BROKER)
            tops.setdefault(lister, []).append(len(listings))
            # A bundle that its lister does not own may not move, and counts at its owner.
            held = lister if holder == name else unowned
            listings.append(Listing(bundle, lister, held, stats, all_own or holder == name))
    listed = {(each.bundle, each.holder) for each in listings}
    for bundle, name in owner.items():
        if (bundle, row_of[name]) not in listed:
            listings.append(Listing(bundle, unowned, row_of[name], {}))
    return listings, tops if "topBundles" in turn else None


def _given(turn: Json) -> dict[str, list[tuple[str, Json]]]:
    if "topBundles" in turn:
        return {name: [(e["bundle"], e) for e in top] for name, top in turn["topBundles"].items()}
    brokers = turn["brokers"].items()
    return {name: [*b["lastStats"].items()] for name, b in brokers if "lastStats" in b}


def _top_bundles(view: View, settings: Settings, most: int) -> TopBundles:
    return TopBundles(view, settings, ties=partial(partial_sort, most=most))


def _decision(view: View, shed: ShedWish) -> Json:
    names = view.brokers.names
    return {
        "bundle": view.bundles.names[shed.bundle],
        "from": names[shed.source],
        "to": None if shed.destination is None else names[shed.destination],
        "label": "Success",
        "reason": _REASONS[Reason(shed.reason)],
    }


def _place(decision: Json) -> tuple[str, str, str]:
    return decision["bundle"], decision["from"], decision["to"] or ""


def _resting(view: View, turn: Json, settings: Settings) -> list[str]:
    """Brokers that stay marked: Pulsar clears each one it passes, up to one that still rests."""
    left = set(turn.get("recentlyUnloadedBrokers", {}))
    brokers, limits = view.brokers, settings.transfer
    for name, reported, relieved in zip(
        brokers.names, brokers.reported_ms.tolist(), brokers.relieved_ms.tolist(), strict=True
    ):
        if not reported or NOW_MS - reported > limits.report_life * 1000 or name not in left:
            continue
        if reported - relieved < limits.delay * 1000:
            break
        left.discard(name)
    return sorted(left)


def topk(case: Json) -> Json:
    """A broker's top bundles, smallest first."""
    most = case.get("k", 10)
    settings = settings_of(case, case).changed({"transfer.top_bundles": max(most, 1)})
    turn: Json = {"brokers": {"b:8080": {"lastStats": case["stats"]}}}
    reports = Reports()
    reports.update(turn["brokers"], settings)
    brokers = reports.brokers(turn["brokers"], [_NO_BROKER])
    listings, _ = _listings(turn, brokers.names, {}, True)
    view = replace(view_of(brokers, listings, ()), policies=policies_of(case))
    try:
        rows = _top_bundles(view, settings, most).of(0).tolist()
    except PartialSortFailed as error:
        return {"error": f"java.lang.IllegalArgumentException: {error}"}
    return {"top": [view.bundles.names[row] for row in rows if most > 0]}
