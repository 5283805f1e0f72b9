"""Average usage and throughput of brokers: one step a report."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.support.clusters import NOW_MS, Broker, view_of
from trimtab.arrays import MEMORY
from trimtab.settings import WeightSettings
from trimtab.state.broker_averages import BrokerAverages, advance, remember_averages
from trimtab.view import Brokers

HALF = WeightSettings(history=0.5)


def told(usage: float, at_ms: int) -> Brokers:
    traffic = (0.0, 0.0, 1000.0 * usage, 1000.0 * usage)
    return view_of({"a": Broker(usage, traffic=traffic, reported_ms=at_ms)}).brokers


def averages(*reports: Brokers) -> list[float]:
    past = BrokerAverages()
    for brokers in reports:
        past = remember_averages(brokers, advance(past, brokers, HALF))
    return [past.usage["a"], past.throughput["a"]]


def test_the_first_report_is_the_average() -> None:
    assert averages(told(0.25, NOW_MS)) == [0.25, 500.0]


def test_each_report_halves_the_distance() -> None:
    assert averages(told(0.25, NOW_MS), told(0.75, NOW_MS + 1)) == [0.5, 1000.0]


def test_looking_twice_at_a_report_changes_nothing() -> None:
    """Pulsar's averages advance whenever its metrics are scraped."""
    again = told(0.75, NOW_MS + 1)
    assert averages(told(0.25, NOW_MS), again, again, again) == [0.5, 1000.0]


def test_memory_counts_with_its_weight() -> None:
    brokers = told(0.25, NOW_MS)
    resources = brokers.resources.copy()
    resources[MEMORY] = 80.0
    brokers = replace(brokers, resources=resources)
    weighed = advance(BrokerAverages(), brokers, WeightSettings(memory=0.5))
    assert weighed[0].tolist() == pytest.approx([0.4])


def test_a_broker_that_left_is_forgotten() -> None:
    past = remember_averages(told(0.25, NOW_MS), np.array([[0.25], [500.0]]))
    other = view_of({"b": Broker(0.5)}).brokers
    assert set(remember_averages(other, advance(past, other, HALF)).usage) == {"b"}
