"""``filter`` and ``anti_affinity``: the candidates that policies and caps leave."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from simulation.parity.cases import Json, brokers_of, rows_of, settings_of, view_of
from trimtab.arrays import Bools
from trimtab.filters import affinity
from trimtab.filters.request import Projection, Request
from trimtab.filters.room import evenness, topic_cap
from trimtab.model import namespace_of
from trimtab.policies import Isolation, Policies
from trimtab.view import View


def policies_of(case: Json) -> Policies:
    return Policies(
        isolation={name: _isolation(given) for name, given in case.get("isolation", {}).items()},
        groups=case.get("groups", {}),
        domains=case.get("domains", {}),
    )


def _isolation(given: Json) -> Isolation:
    return Isolation(
        namespaces=tuple(given.get("namespaces", ())),
        primary=tuple(given.get("primary", ())),
        secondary=tuple(given.get("secondary", ())),
        min_available=int(given.get("minLimit", 1)),
    )


def run_filters(case: Json) -> Json:
    request = _request(case)
    view, settings = request.view, settings_of(case, case)
    candidates = _mask(view, case["candidates"])
    match case["filter"]:
        case "most_servicing":
            left = evenness(request, candidates, settings)
        case "topic_count":
            left = topic_cap(request, candidates, settings)
            left = left if left.any() else candidates
        case "isolation":
            left = request.projection.permits.of(request.namespace, candidates)
    return {"candidates": _names(view, left)}


def anti_affinity(case: Json) -> Json:
    request = _request(case)
    counted = {"modular": affinity.GroupCount.NAMESPACES, "extensible": affinity.GroupCount.BUNDLES}
    return {name: _spread(case, request, what) for name, what in counted.items()}


def _spread(case: Json, request: Request, counted: affinity.GroupCount) -> Json:
    view, settings = request.view, settings_of(case, case)
    candidates = _mask(view, case["candidates"])
    had = affinity.counts(request, counted)
    answered: Json = {
        "counts": None if had is None else _positive(view, had.tolist()),
        "candidates": _names(view, affinity.spread(request, candidates, counted, settings)),
    }
    if "current" in case:
        current = view.brokers.names.index(case["current"])
        answered["shouldUnload"] = affinity.may_leave(current, candidates, had)
    return answered


def _request(case: Json) -> Request:
    bundle = case.get("bundle", "tenant/namespace/0x00000000_0xffffffff")
    view = holding_view(case)
    projection = Projection(view)
    for row, name in enumerate(view.brokers.names):
        waiting = case.get("brokers", {}).get(name, {}).get("preallocated", {})
        projection.expect_topics(row, sum(int(b.get("topics", 0)) for b in waiting.values()))
    return projection.request_for(namespace_of(bundle))


def holding_view(case: Json) -> View:
    """A view of holders: brokers and the bundles of ``owned``.

    Two brokers may claim the same bundle, so a row's name has both.
    """
    owned: Mapping[str, list[str]] = case.get("owned", {})
    named = [*case["candidates"], *case.get("brokers", {}), *owned, case.get("current")]
    brokers = {
        name: {
            **case.get("brokers", {}).get(name, {}),
            "bundles": [f"{bundle}@{name}" for bundle in owned.get(name, ())],
        }
        for name in named
        if name is not None
    }
    columns = brokers_of(brokers, brokers)
    flagged = _flags(columns.names, case.get("nonPersistentOnly", ()))
    view = view_of({"brokers": brokers}, replace(columns, persistent=~flagged), (), lambda _: True)
    return replace(view, policies=policies_of(case))


def _flags(names: tuple[str, ...], marked: list[str] | tuple[str, ...]) -> Bools:
    return np.array([name in marked for name in names], dtype=np.bool_)


def _mask(view: View, names: list[str]) -> Bools:
    mask = np.zeros(len(view.brokers.names), dtype=np.bool_)
    mask[rows_of(view, names)] = True
    return mask


def _names(view: View, mask: Bools) -> list[str]:
    return sorted(view.brokers.names[row] for row in np.flatnonzero(mask).tolist())


def _positive(view: View, counts: list[int]) -> dict[str, int]:
    named = zip(view.brokers.names, counts, strict=True)
    return {name: count for name, count in sorted(named) if count}
