"""The job watches three real Pulsar brokers, and what it sees is what they said.

    TRIMTAB_REALPULSAR=folder pytest -s -m pulsar tests/e2e

The folder is the user's own. It holds `up.sh N modular`, which returns once a fresh cluster of N
brokers on this host serves and has printed for each `ready <web service URL> <broker service URL>`;
it must add the lines of $EXTRA_CONF to the brokers' configuration. `down.sh` stops what that
started, however far it got. `pulsar-perf` is Pulsar's own, pointed at the cluster.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.evidence import Evidence, show
from tests.e2e.observed_job import CLUSTER, PHASES, Phase, awake, observe
from tests.support.verdicts import replayed
from trimtab.reasons import IDLE, Rule
from trimtab.view import is_monitoring
from trimtab.wire import keys
from trimtab.wire.rounds import RoundRecord

SCRIPTS = os.environ.get("TRIMTAB_REALPULSAR", "")
if not SCRIPTS:
    pytest.skip("TRIMTAB_REALPULSAR names no folder of scripts", allow_module_level=True)

pytestmark = [pytest.mark.e2e, pytest.mark.pulsar, pytest.mark.slow]

RESOURCES = ("cpu", "memory", "directMemory", "bandwidthIn", "bandwidthOut")
STATS = ("msgRateIn", "msgRateOut", "msgThroughputIn", "msgThroughputOut")
COUNTS = ("topics", "consumerCount", "producerCount", "cacheSize")


@pytest.fixture(scope="module")
def evidence(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Evidence]:
    with observe(Path(SCRIPTS).resolve(), tmp_path_factory.mktemp("pulsar")) as found:
        show(found)
        yield found


def rounds_of(evidence: Evidence, phase: Phase) -> list[RoundRecord]:
    version = PHASES.index(phase)
    return [record for _, record in evidence.rounds if record.settings_version == version]


def single(value: float) -> float:
    """Rounded to binary32, in which Pulsar computes percentages."""
    rounded: float = struct.unpack("f", struct.pack("f", value))[0]
    return rounded


def percent(resource: dict[str, float]) -> float:
    """Pulsar's percentage of a resource, 0 where its limit is unknown."""
    if resource["limit"] <= 0:
        return 0.0
    return single(single(single(resource["usage"]) / single(resource["limit"])) * 100)


def usage(said: dict[str, Any]) -> float:
    """Pulsar's weighted usage of a report under its default weights, which leave memory out."""
    return max(percent(said[name]) for name in ("cpu", "bandwidthIn", "bandwidthOut")) / 100


def test_every_round_sees_the_usage_that_the_brokers_reported(evidence: Evidence) -> None:
    for batch, record in evidence.rounds:
        newest = evidence.newest(batch)
        assert record.usage == {broker: usage(said) for broker, said in newest.items()}
        bundles = {bundle for said in newest.values() for bundle in said["lastStats"]}
        assert record.summary["bundles"] == len(bundles)


def test_the_jobs_state_is_the_newest_report_of_each_broker(evidence: Evidence) -> None:
    newest = evidence.newest(evidence.last)
    assert len(newest) == 3
    assert evidence.snapshots.keys() == newest.keys()
    for broker, said in newest.items():
        snapshot = evidence.snapshots[broker]
        assert list(snapshot.resources) == [percent(said[name]) for name in RESOURCES]
        assert list(snapshot.traffic) == [said[name] for name in STATS]
        assert snapshot.session == snapshot.start_ms == said["startTimestamp"]
        assert snapshot.version == said["brokerVersionString"]
        assert (snapshot.topics, snapshot.listed) == (said["numTopics"], len(said["bundles"]))


def test_the_jobs_bundles_are_the_reported_ones(evidence: Evidence) -> None:
    for broker, said in evidence.newest(evidence.last).items():
        snapshot = evidence.snapshots[broker]
        assert set(snapshot.bundles) == said["lastStats"].keys()
        for row, bundle in enumerate(snapshot.bundles):
            stats = said["lastStats"][bundle]
            assert list(snapshot.stats[:, row]) == [stats[name] for name in STATS]
            assert list(snapshot.counts[:, row]) == [stats[name] for name in COUNTS]
            assert snapshot.shown[row] == (bundle in said["bundles"])
        sums = snapshot.stats.sum(axis=1)
        # Pulsar sums its bundles itself; one may be counted again between the two.
        assert sums == pytest.approx([said[name] for name in STATS], rel=0.05, abs=1.0)


def test_averages_stay_within_what_was_reported(evidence: Evidence) -> None:
    spoken = evidence.reports(evidence.last)
    for broker, snapshot in evidence.snapshots.items():
        for row, bundle in enumerate(snapshot.bundles):
            said = [
                report.said["lastStats"][bundle]
                for report in spoken
                if report.broker == broker and bundle in report.said["lastStats"]
            ]
            for column, name in enumerate(STATS):
                values = [stats[name] for stats in said]
                low, high = min(values) - 1e-6, max(values) + 1e-6
                assert low <= snapshot.short[column, row] <= high
                assert low <= snapshot.long[column, row] <= high


@pytest.mark.parametrize("phase", PHASES, ids=lambda phase: phase.name)
def test_a_plan_or_the_rule_that_bound_it_is_told(evidence: Evidence, phase: Phase) -> None:
    held = rounds_of(evidence, phase)
    assert held
    for record in held:
        assert (record.strategy, record.placement) == (phase.shedding, phase.placement)
        assert record.observe_only
        assert record.problems == ()
        assert bool(record.skipped) != bool(record.moves or record.refusals)


@pytest.mark.parametrize("phase", PHASES[:2], ids=lambda phase: phase.name)
def test_brokers_of_one_host_are_balanced(evidence: Evidence, phase: Phase) -> None:
    """They report the host's CPU, each over another minute: a gap of 10 points is a real one."""
    calm = takewhile(
        lambda record: max(record.usage.values()) - min(record.usage.values()) < 0.1,
        filter(awake, rounds_of(evidence, phase)),
    )
    assert {record.skipped for record in calm} <= {rule.value for rule in IDLE}


def test_a_strategy_told_to_act_on_any_gap_plans_moves(evidence: Evidence) -> None:
    owners = {bundle: b for b, s in evidence.snapshots.items() for bundle in s.bundles}
    moves = [move for record in rounds_of(evidence, PHASES[-1]) for move in record.moves]
    assert moves
    for move in moves:
        assert owners[move.bundle] == move.source
        assert move.destination in evidence.snapshots.keys() - {move.source}


def test_heartbeat_bundles_are_seen_and_stay(evidence: Evidence) -> None:
    beats = {b for s in evidence.snapshots.values() for b in s.bundles if is_monitoring(b)}
    assert len(beats) == len(evidence.snapshots)
    _, last = list(evidence.rounds)[-1]
    assert last.obstacles == {Rule.NOT_MOVABLE.value: len(beats)}
    assert not beats & {move.bundle for _, record in evidence.rounds for move in record.moves}


def test_a_replay_of_the_recorded_batches_decides_the_same(evidence: Evidence) -> None:
    again = replayed(evidence.topics, evidence.config, evidence.batches[0].query)
    assert again.clusters.keys() == {CLUSTER}


def test_an_observer_commands_no_broker(evidence: Evidence) -> None:
    assert [*evidence.topics.all(keys.COMMANDS)] == []
    assert [*evidence.topics.all(keys.DEAD_LETTERS)] == []
    assert evidence.redis_keys == {keys.open_key(CLUSTER)}
