"""Answers cases of Pulsar's recorded decisions through the functions that the job uses.

It reads one JSON case per line and writes one decision per line, in the form of the recording.
Ties are in Java's order. `trimtab parity` is its command.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Final

from simulation.parity import figures, filtering, place, shed, splits, topics, transfer, triggers
from simulation.parity.cases import Json
from trimtab.splitting import DIVIDERS

OPERATIONS: Final[dict[str, Callable[[Json], Json]]] = {
    "shed": shed.shed,
    "place": place.place,
    "resource": figures.resource,
    "bundle_data": figures.bundle_data,
    "split_positions": splits.split_positions,
    "split_needed": triggers.split_needed,
    "split_needed_ext": triggers.split_needed_ext,
    "hash": topics.positions,
    "bundle_of": topics.bundle_of,
    "filter": filtering.run_filters,
    "anti_affinity": filtering.anti_affinity,
    "transfer_shed": transfer.transfer_shed,
    "topk": transfer.topk,
}


class Unsupported(ValueError):
    """Raised for an operation or strategy that trimtab does not have."""


def answer(case: Json) -> Json:
    """Answer a case with trimtab's decision; raises Unsupported."""
    if not is_supported(case):
        asked = " ".join(str(case[key]) for key in ("op", "strategy", "algorithm") if key in case)
        raise Unsupported(f"trimtab cannot answer {asked!r}")
    return {"id": case["id"], "op": case["op"], **OPERATIONS[case["op"]](case)}


def is_supported(case: Json) -> bool:
    """Whether `answer` knows the case's operation and strategy."""
    match case.get("op"):
        case "shed":
            return case.get("strategy") in shed.STRATEGIES
        case "place":
            return case.get("strategy") in place.STRATEGIES
        case "split_positions":
            return case.get("algorithm") in DIVIDERS
    return case.get("op") in OPERATIONS


def decision(line: str) -> Json:
    """The answer to a line; without one it gives ``error``, as the recording does."""
    known: Json = {}
    try:
        case = json.loads(line)
        known = {key: case[key] for key in ("id", "op")}
        return answer(case)
    # A case may be wrong in any way, and the cases after it must still be answered.
    except Exception as error:
        return {**known, "error": f"{type(error).__name__}: {error}"}
