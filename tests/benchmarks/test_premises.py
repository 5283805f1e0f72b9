"""What the benchmarks take for granted: of their reports, of a step, of how a delay is split."""

from __future__ import annotations

import json
import re
import tomllib

import numpy as np

from benchmarks.fleet import BROKERS, CLUSTER, SETTINGS, StepBroker, step_model
from benchmarks.reports import reports, sql_type
from trimtab.intake.assemble import assemble
from trimtab.intake.fold import Arrival, fold
from trimtab.intake.snapshot import IntakeSettings, Snapshot
from trimtab.plan import Plan
from trimtab.round.decide import decide
from trimtab.settings import Settings
from trimtab.state.round_state import RoundState
from trimtab.wire.reports.decode import decode
from trimtab.wire.reports.load_report import encode

NOW_MS = 1_800_000_000_000


def test_a_report_of_a_hundred_bundles_is_as_large_as_a_real_one_and_always_new() -> None:
    made = list(reports(brokers=3, bundles=100, each=2))
    assert [(broker[-6:], sequence) for broker, sequence, _ in made][:4] == [
        ("1:8080", 1),
        ("2:8080", 1),
        ("3:8080", 1),
        ("1:8080", 2),
    ]
    values = [encode(data) for _, _, data in made]
    assert all(20_000 < len(value) < 30_000 for value in values)
    assert len(set(values)) == len(values)
    assert all(len(decode(value).bundles) == 100 for value in values)


def test_sparks_reader_is_given_every_field_of_a_report() -> None:
    text = sql_type()
    (_, _, data), *_ = reports(brokers=2, bundles=1, each=1)
    named = set(re.findall(r"(\w+):", text))
    assert named >= json.loads(encode(data)).keys()
    assert named >= json.loads(encode(data))["lastStats"].popitem()[1].keys()
    assert "lastStats: map<string, struct<msgRateIn: double" in text
    assert "bundles: array<string>" in text


def test_a_step_is_answered_by_one_move_from_that_broker_in_the_next_round() -> None:
    fleet = Rounds()
    assert not fleet.round().moves
    stepped = fleet.brokers["broker-042:8080"]
    stepped.step()
    (move,) = fleet.round().moves
    assert move.source == "broker-042:8080"
    stepped.rest()
    assert not fleet.round().moves


def test_a_step_is_known_by_the_first_report_that_shows_it() -> None:
    broker = next(iter(Rounds().brokers.values()))
    for _ in range(3):
        broker.load_report()
    broker.step()
    assert broker.first_stepped == 0
    broker.load_report()
    broker.load_report()
    assert broker.first_stepped == 4


class Rounds:
    """The benchmark's fleet before the round, without Kafka, Spark or Redis."""

    def __init__(self) -> None:
        model = step_model()
        assert len(model.brokers) == BROKERS
        self.brokers = {name: StepBroker(model, row) for row, name in enumerate(model.brokers)}
        self._snapshots: dict[str, Snapshot] = {}
        self._state = RoundState()
        self._now_ms = NOW_MS
        table = tomllib.loads(SETTINGS)
        self._intake = IntakeSettings(**table["intake"])
        self._settings = Settings.parse(
            {
                f"{group}.{name}": value
                for group, members in table["settings"].items()
                for name, value in members.items()
            }
        )

    def round(self) -> Plan:
        self._now_ms += 2000
        for name, broker in self.brokers.items():
            report = decode(encode(broker.load_report()))
            arrival = Arrival(self._now_ms, broker.started_ms, self._now_ms, report)
            snapshot, _ = fold(self._snapshots.get(name), name, [arrival], self._intake)
            assert snapshot is not None
            self._snapshots[name] = snapshot
        view, _ = assemble(CLUSTER, list(self._snapshots.values()), None)
        rng = np.random.default_rng(1)
        plan, self._state = decide(view, self._state, self._settings, self._now_ms, rng)
        return plan
