"""Reports that real Pulsar 4.0.8 brokers served, read value for value."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trimtab.load import percentages, unweighted_usage
from trimtab.wire.reports.decode import decode

SAMPLES = sorted((Path(__file__).parent / "load-reports").glob("*.json"))
RESOURCES = ("cpu", "memory", "directMemory", "bandwidthIn", "bandwidthOut")
RATES = ("msgRateIn", "msgRateOut", "msgThroughputIn", "msgThroughputOut")
COUNTS = ("topics", "consumerCount", "producerCount", "cacheSize")


@pytest.fixture(params=SAMPLES, ids=lambda sample: sample.stem)
def sample(request: pytest.FixtureRequest) -> bytes:
    path: Path = request.param
    return path.read_bytes()


def test_every_figure_arrives(sample: bytes) -> None:
    said: Any = json.loads(sample)
    report = decode(sample)
    assert report.resources.T.tolist() == [
        [said[name]["usage"], said[name]["limit"]] for name in RESOURCES
    ]
    assert report.traffic.tolist() == [said[name] for name in RATES]
    assert report.bundles == tuple(sorted(said["lastStats"]))
    for i, bundle in enumerate(report.bundles):
        stats = said["lastStats"][bundle]
        assert report.stats[:, i].tolist() == [stats[name] for name in RATES]
        assert report.counts[:, i].tolist() == [stats[name] for name in COUNTS]
    assert report.shown.tolist() == [bundle in said["bundles"] for bundle in report.bundles]
    assert (report.topics, report.listed) == (said["numTopics"], len(said["bundles"]))
    assert (report.start_ms, report.version) == (said["startTimestamp"], "4.0.8")
    assert report.load_manager == said["loadManagerClassName"]
    assert (report.persistent, report.non_persistent, report.heartbeat) == (True, True, False)


def test_our_usage_is_the_one_the_broker_computed(sample: bytes) -> None:
    report = decode(sample)
    resources = percentages(report.resources[0], report.resources[1])[:, np.newaxis]
    assert unweighted_usage(resources)[0] == np.float32(json.loads(sample)["maxResourceUsage"])


def test_there_are_three_samples() -> None:
    assert len(SAMPLES) == 3
