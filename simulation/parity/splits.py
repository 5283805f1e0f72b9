"""``split_positions``: where an algorithm splits a bundle, and its children."""

from __future__ import annotations

from typing import Final

import numpy as np

from simulation.parity.cases import FOUR, Json, numbers, settings_of
from trimtab.model import parse_bundle
from trimtab.splitting import DIVIDERS
from trimtab.splitting.request import CannotSplit, SplitFlaw, SplitRequest, children
from trimtab.store.ring import position

_WORDS: Final = {
    SplitFlaw.TOO_SMALL: "{} bundle can't be split further since range not larger than 1",
    SplitFlaw.OUTSIDE: "The given fixed keys must between the key range of the {} bundle",
    SplitFlaw.EMPTY_CHILD: "Cannot create bundle object for an empty key range",
    SplitFlaw.NO_POSITION: "SplitBoundaries can't be empty",
}


def split_positions(case: Json) -> Json:
    """Answer a case: ``boundaries`` null if there is nothing to split; flaws in Pulsar's words."""
    request = _request(case)
    try:
        cuts = DIVIDERS[case["algorithm"]](request, settings_of(case, case).split)
    except CannotSplit as error:
        return {"boundaryError": _in_java(case, error)}
    if not cuts:
        return {"boundaries": None}
    answered: Json = {"boundaries": [f"0x{cut:08x}" for cut in cuts]}
    try:
        return {**answered, "bundles": list(map(str, children(request.bundle, cuts)))}
    except CannotSplit as error:
        return {**answered, "splitError": _in_java(case, error)}


def _in_java(case: Json, error: CannotSplit) -> str:
    words = _WORDS[error.flaw].format(_bundle(case))
    return f"java.lang.IllegalArgumentException: {words}"


def _bundle(case: Json) -> str:
    return f"{case.get('namespace', 'tenant/ns')}/{case.get('range', '0x00000000_0xffffffff')}"


def _request(case: Json) -> SplitRequest:
    topics = {topic["name"]: topic for topic in case["topics"]}
    silent = {name for name, topic in topics.items() if topic.get("noStats")}
    given = [[0.0] * 4 if name in silent else numbers(topics[name], FOUR) for name in topics]
    where = [_position(topics[name].get("pos"), position(name)) for name in topics]
    wanted = case.get("positions")
    return SplitRequest(
        bundle=parse_bundle(_bundle(case))[1],
        positions=np.array(where, dtype=np.int64),
        traffic=np.array(given).reshape(-1, 4).T,
        wanted=None if wanted is None else tuple(_position(at, 0) for at in wanted),
        forced=case.get("force", False),
    )


def _position(given: str | int | None, otherwise: int) -> int:
    if given is None:
        return otherwise
    return int(given, 16) if isinstance(given, str) else given
