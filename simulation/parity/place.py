"""``place``: asks a placement strategy for one bundle after the other."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from simulation.parity.avg import Avg
from simulation.parity.cases import (
    FOUR,
    Json,
    add_trace,
    brokers_of,
    numbers,
    rounds_of,
    rows_of,
    settings_of,
    view_of,
)
from simulation.parity.java_maps import ConcurrentHashMap, HashMap
from simulation.parity.load_data import Reports
from simulation.parity.load_data import view_of as load_data_view
from trimtab.filters.request import Projection
from trimtab.placement import PLACERS
from trimtab.placement.least_resource_usage import LeastResourceUsageHistory
from trimtab.placement.round_robin import RoundRobinHistory
from trimtab.view import View


def place(case: Json) -> Json:
    return STRATEGIES[case["strategy"]](case)


def _best(name: str, history: Any, case: Json) -> Json:
    """The equally good brokers; Pulsar draws one of them."""
    answers, last = [], None
    for turn in rounds_of(case):
        last = turn if "brokers" in turn else last
        assert last is not None
        settings = settings_of(case, turn)
        view, projection = _placing_view(last)
        names = HashMap(turn.get("candidates", view.brokers.names))
        rows = rows_of(view, names)
        if not rows.size:
            # The load manager never asks without candidates; Pulsar's strategies then return none.
            if isinstance(history, LeastResourceUsageHistory):
                live = {n: u for n, u in history.usage.items() if n in view.brokers.names}
                history = LeastResourceUsageHistory(live)
            trace = {"candidateOrder": [], **_usage(history)}
            answers.append({"present": False, "best": [], "trace": trace})
            continue
        placer = PLACERS[name](projection, history, settings)
        best, history = placer.best(turn.get("bundle", ""), rows), placer.remembered()
        answers.append(
            {
                "present": True,
                "best": sorted(view.brokers.names[row] for row in best.tolist()),
                "trace": {
                    "candidateOrder": list(names),
                    **_usage(history),
                },
            }
        )
    return {"rounds": [add_trace(case, answered) for answered in answers]}


def _in_turn(case: Json) -> Json:
    """Answer for round robin: candidates keep the order in which the case lists them."""
    history, answers, view = RoundRobinHistory(), [], None
    for turn in rounds_of(case):
        if "brokers" in turn:
            view, _ = _placing_view(turn)
        assert view is not None
        settings, names = settings_of(case, turn), view.brokers.names
        rows = rows_of(view, turn.get("candidates", names))
        placer = PLACERS["round-robin"](Projection(view), history, settings)
        (best,) = placer.best(turn.get("bundle", ""), rows).tolist()
        answers.append({"choice": names[best]})
        history = placer.remembered()
    return {"rounds": answers}


def _usage(history: object) -> Json:
    return {"usage": history.usage} if isinstance(history, LeastResourceUsageHistory) else {}


def _placing_view(turn: Json) -> tuple[View, Projection]:
    """A view for placement: sums run in the order in which a broker lists its bundles."""
    brokers = dict(turn["brokers"])
    known = dict(turn.get("bundles", {}))
    for name, broker in brokers.items():
        if "timeAverage" in broker:
            given = broker["timeAverage"]
            long = {"msgRateIn": given.get("longTermMsgRateIn", 0.0)}
            long["msgRateOut"] = given.get("longTermMsgRateOut", 0.0)
            known[f"time/average/{name}"] = {"shortTerm": {}, "longTerm": long}
            brokers[name] = {**broker, "bundles": [f"time/average/{name}"]}
    columns = brokers_of(turn["brokers"], ConcurrentHashMap(brokers))
    view = view_of({"brokers": brokers, "bundles": known}, columns, (), lambda _: True)
    projection = Projection(view)
    for row, name in enumerate(columns.names):
        waiting = brokers[name].get("preallocated", {})
        for bundle in ConcurrentHashMap(waiting):
            rate_in, rate_out = numbers(waiting[bundle]["longTerm"], FOUR[:2])
            projection.arriving[row] += rate_in + rate_out
    return view, projection


def _planned(case: Json) -> Json:
    avg = Avg({})
    history = [add_trace({}, avg.run(case, turn)) for turn in case.get("history", ())]
    answers, view = [], None
    for turn in rounds_of(case):
        if "brokers" in turn:
            view, _ = _placing_view(turn)
            avg.plan.observe(turn.get("bundles", {}))
        assert view is not None
        settings, bundle = settings_of(case, turn), turn.get("bundle", "")
        answers.append({"choice": avg.select(view, bundle, settings, turn.get("candidates"))})
    return {"history": history, "rounds": answers} if "history" in case else {"rounds": answers}


def _by_average(case: Json) -> Json:
    """Answer for the extensible manager's placement, over load data that is kept."""
    reports, answers, given = Reports(), [], {}
    for turn in rounds_of(case):
        settings = settings_of(case, turn)
        if "brokers" in turn:
            given = turn["brokers"]
            reports.update(given, settings)
        asked = HashMap(turn.get("candidates", reports.order))
        view = load_data_view(reports.brokers(given, asked), (), ())
        rows, names = rows_of(view, asked), view.brokers.names
        placer = PLACERS["least-average-usage"](Projection(view), None, settings)
        best = placer.best("", rows).tolist() if rows.size else []
        answers.append({"present": bool(best), "best": sorted(names[row] for row in best)})
    return {"rounds": answers}


STRATEGIES: Final[dict[str, Callable[[Json], Json]]] = {
    "LeastLongTermMessageRate": partial(_best, "least-long-term-rate", None),
    "LeastResourceUsageWithWeight": partial(
        _best, "least-resource-usage", LeastResourceUsageHistory()
    ),
    "AvgShedder": _planned,
    "RoundRobinBrokerSelector": _in_turn,
    "extensions.LeastResourceUsageWithWeight": _by_average,
}
