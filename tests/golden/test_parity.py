"""Decision for decision as Pulsar 4.0.8, on its own recorded decisions."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.compare import differences
from tests.support.parity import answer

HERE: Final = Path(__file__).parent / "parity"


def recorded(name: str) -> list[dict[str, Any]]:
    with gzip.open(HERE / name, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


@pytest.fixture(scope="module")
def recording() -> list[tuple[dict[str, Any], dict[str, Any]]]:
    return list(zip(recorded("cases.jsonl.gz"), recorded("decisions.jsonl.gz"), strict=True))


@pytest.mark.parametrize(
    ("op", "strategy", "count"),
    [
        ("shed", "ThresholdShedder", 45),
        ("shed", "AvgShedder", 45),
        ("place", "LeastLongTermMessageRate", 45),
        ("place", "LeastResourceUsageWithWeight", 45),
        ("place", "AvgShedder", 45),
        ("resource", None, 31),
        ("bundle_data", None, 25),
    ],
)
def test_recorded_decisions(
    recording: list[tuple[dict[str, Any], dict[str, Any]]],
    op: str,
    strategy: str | None,
    count: int,
) -> None:
    """Unloads in order, destinations, best sets, averages, scores and hits, to the last bit."""
    asked = [(c, d) for c, d in recording if (c["op"], c.get("strategy")) == (op, strategy)]
    assert len(asked) == count
    found = [line for case, said in asked for line in differences(answer(case), said, case["id"])]
    assert found == []
