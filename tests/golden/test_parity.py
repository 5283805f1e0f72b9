"""Decision for decision as Pulsar 4.0.8, on its own recorded decisions."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any, Final

import pytest

from simulation.parity import answer
from tests.support.compare import differences

HERE: Final = Path(__file__).parent / "parity"

DIFFERENT: Final = {"1-1645"}
"""UniformLoadShedder beyond 32 bits (docs/pulsar-differences.md)."""


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
        ("shed", "OverloadShedder", 45),
        ("shed", "UniformLoadShedder", 45),
        ("shed", "AvgShedder", 45),
        ("place", "LeastLongTermMessageRate", 45),
        ("place", "LeastResourceUsageWithWeight", 45),
        ("place", "RoundRobinBrokerSelector", 32),
        ("place", "AvgShedder", 45),
        ("place", "extensions.LeastResourceUsageWithWeight", 45),
        ("transfer_shed", None, 45),
        ("topk", None, 45),
        ("filter", None, 69),
        ("anti_affinity", None, 45),
        ("split_needed", None, 44),
        ("split_needed_ext", None, 45),
        ("resource", None, 45),
        ("bundle_data", None, 25),
        ("split_positions", None, 136),
        ("hash", None, 29),
        ("bundle_of", None, 45),
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
    assert [line for line in found if line.split(".")[0] not in DIFFERENT] == []


def test_where_pulsar_overflows_it_sheds_nothing(
    recording: list[tuple[dict[str, Any], dict[str, Any]]],
) -> None:
    """124 GB/s next to 12: both are above 2^31, and so is a tenth of their difference."""
    [(case, said)] = [each for each in recording if each[0]["id"] in DIFFERENT]
    assert [turn["unload"] for turn in said["rounds"]] == [{}, {}]
    ours = [list(turn["unload"]) for turn in answer(case)["rounds"]]
    assert ours == [["10.0.0.6:8080"]] * 2
