"""Usage that no traffic explains and that swings, on all brokers or on one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from tests.planner.views import carrying, later
from trimtab.arrays import CPU, Floats
from trimtab.load_model.history import PlannerHistory
from trimtab.load_model.resources.swings import Swing, find_doubt, follow_swings
from trimtab.planner import shed
from trimtab.settings import Settings

BROKERS = 8
NAMES = tuple("abcdefgh")
MINUTES = 180
WATCHED = 60
KEPT = 0.5 ** (1 / 30)
"""The part of an average that a minute's report leaves."""
ALIKE = np.arange(BROKERS) / BROKERS
PERIODS = np.linspace(50.0, 90.0, BROKERS)[[3, 0, 6, 1, 7, 4, 2, 5]]


def collecting(minute: int) -> Floats:
    """Garbage that each broker collects at times of its own: 20 points, every hour or so."""
    garbage: Floats = 0.2 * ((minute / PERIODS + ALIKE) % 1.0)
    return garbage


def busier(minute: int) -> Floats:
    """One broker that takes 15 points more for good."""
    more: Floats = 0.15 * ((minute >= 90) & (np.arange(BROKERS) == 2))
    return more


def count_moves(own: Callable[[int], Floats], minutes: int = MINUTES) -> int:
    """Wishes, after an hour in which it was only watched, of a fleet whose bundles keep still while
    brokers themselves take ``own`` more."""
    start = carrying({name: [(f"t/{name}", 0.02)] * 20 for name in NAMES})
    history, moves = PlannerHistory(), 0
    average = start.brokers.resources[CPU] + 100 * own(0)
    for minute in range(minutes):
        view = later(start, minute)
        resources, smoothed = view.brokers.resources.copy(), view.brokers.resources.copy()
        resources[CPU] += 100 * own(minute)
        smoothed[CPU] = average = KEPT * average + (1 - KEPT) * resources[CPU]
        brokers = replace(view.brokers, resources=resources, smoothed_resources=smoothed)
        settings = Settings.parse({"round.observe_only": minute < WATCHED})
        wishes, history = shed(replace(view, brokers=brokers), history, settings)
        moves += len(wishes) if minute >= WATCHED else 0
    return moves


def test_what_swings_on_every_broker_moves_nothing() -> None:
    assert count_moves(collecting) == 0


def test_one_broker_that_is_busier_for_good_gives_bundles_away() -> None:
    assert count_moves(busier, 90) == 0
    assert count_moves(busier) > 0


def doubt_of(own: Callable[[int], Floats], minutes: int) -> Floats:
    """The standard deviations of the averages after so many reports."""
    swings: dict[str, Swing] = {}
    average = own(0)
    for minute in range(1, minutes):
        off = own(minute) - average
        swings = follow_swings(swings, NAMES, off, np.full(BROKERS, KEPT))
        average = KEPT * average + (1 - KEPT) * own(minute)
    return np.sqrt(find_doubt([swings.get(name, Swing()) for name in NAMES]))


def test_an_average_is_doubted_at_least_as_much_as_it_swings() -> None:
    averages, average = [], collecting(0)
    for minute in range(MINUTES):
        average = KEPT * average + (1 - KEPT) * collecting(minute)
        averages.append(average)
    swung = float(np.std(averages[120:], axis=0).max())
    doubt = doubt_of(collecting, MINUTES)
    assert (swung < doubt).all()
    # A single report swings by six points.
    assert (doubt < 0.05).all()


def test_noise_of_single_reports_hardly_counts_after_some_hours() -> None:
    rng = np.random.default_rng(1)
    noise = rng.normal(0.0, 0.01, (600, BROKERS))
    young, old = (doubt_of(noise.__getitem__, minutes) for minutes in (3, 600))
    assert (young > 0.005).all()
    # An average over so long has a tenth of a report's deviation.
    assert old == pytest.approx(0.0011, rel=0.3)


def test_what_all_brokers_do_together_is_no_swing() -> None:
    def together(minute: int) -> Floats:
        return np.full(BROKERS, 0.1 * np.sin(minute / 20))

    assert doubt_of(together, MINUTES) == pytest.approx(0.0, abs=1e-6)


def test_one_report_of_each_says_nothing_of_swings() -> None:
    assert doubt_of(collecting, 1) == pytest.approx(0.0)
