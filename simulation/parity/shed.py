"""``shed``: runs a shedder over a case's rounds."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from simulation.parity.avg import Avg
from simulation.parity.cases import (
    Json,
    LoadData,
    add_trace,
    brokers_of,
    rounds_of,
    settings_of,
    view_of,
)
from simulation.parity.java_maps import shedding_order
from simulation.parity.unloads import dropped_by_grace, may_shed, unload_of
from trimtab.settings import Settings
from trimtab.shedding import SHEDDERS
from trimtab.shedding.threshold import ThresholdHistory
from trimtab.view import View


class _Plain:
    """A shedder without a history over a case's rounds."""

    def __init__(self, name: str, case: Json) -> None:
        self._shed = SHEDDERS[name]
        self._load = LoadData(case.get("inPlace", False))

    def run(self, case: Json, turn: Json) -> Json:
        view, settings, trace = _seen(self._load, case, turn)
        sheds, _ = self._shed(view, None, settings)
        return {
            **dropped_by_grace(case, turn, settings),
            "unload": unload_of(view, sheds),
            "trace": trace,
        }


class _Threshold:
    """ThresholdShedder over a case's rounds."""

    def __init__(self, case: Json) -> None:
        self._notified = case.get("notifyActive", True)
        self._load = LoadData(case.get("inPlace", False))
        self._history = ThresholdHistory()

    def run(self, case: Json, turn: Json) -> Json:
        view, settings, trace = _seen(self._load, case, turn)
        past = self._history.usage
        if self._notified:
            active = set(turn["activeBrokers"] if "activeBrokers" in turn else turn["brokers"])
            past = {name: value for name, value in past.items() if name in active}
        sheds, history = SHEDDERS["threshold"](view, ThresholdHistory(past), settings)
        self._history = ThresholdHistory({**past, **history.usage})
        return {
            **dropped_by_grace(case, turn, settings),
            "unload": unload_of(view, sheds),
            "trace": {**trace, "usage": self._history.usage},
        }


def _seen(load: LoadData, case: Json, turn: Json) -> tuple[View, Settings, Json]:
    """The view of a turn, its settings, and the orders that break its ties."""
    load.update(turn)
    settings = settings_of(case, turn)
    brokers = brokers_of(turn["brokers"], load.brokers)
    order = shedding_order(load.bundles)
    view = view_of(turn, brokers, order, may_shed(case, turn, settings, order))
    return view, settings, {"brokerOrder": list(brokers.names), "bundleOrder": order}


STRATEGIES: Final[dict[str, Callable[[Json], Any]]] = {
    "ThresholdShedder": _Threshold,
    "OverloadShedder": partial(_Plain, "overload"),
    "UniformLoadShedder": partial(_Plain, "uniform"),
    "AvgShedder": Avg,
}


def shed(case: Json) -> Json:
    shedder = STRATEGIES[case["strategy"]](case)
    rounds = [shedder.run(case, turn) for turn in rounds_of(case)]
    return {"rounds": [add_trace(case, answered) for answered in rounds]}
