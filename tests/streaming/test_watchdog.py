"""A driver is stuck when nothing moves for long enough, and only then."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from streaming.watchdog import Progress, Watchdog

LOOKS = 3


@pytest.fixture
def progress() -> Progress:
    """Of a query that has been through a batch."""
    progress = Progress()
    progress.ended(0)
    return progress


@pytest.fixture
def causes() -> list[str]:
    return []


@pytest.fixture
def watchdog(progress: Progress, causes: list[str]) -> Watchdog:
    return Watchdog(progress, LOOKS, causes.append)


def test_a_supervisor_hears_of_each_look_until_it_is_stuck(progress: Progress) -> None:
    heard = list[str]()
    watchdog = Watchdog(progress, LOOKS, lambda _: heard.append("stuck"), lambda: heard.append("."))
    progress.began(7)
    looks(watchdog, LOOKS + 3)
    assert heard == ["."] * LOOKS + ["stuck"]


def looks(watchdog: Watchdog, number: int) -> None:
    for _ in range(number):
        watchdog.look()


def test_a_batch_that_does_not_end_is_named(
    watchdog: Watchdog, progress: Progress, causes: list[str]
) -> None:
    progress.began(7)
    looks(watchdog, LOOKS)
    assert causes == []
    looks(watchdog, 1)
    [cause] = causes
    assert "batch 7 began" in cause


def test_a_late_word_from_spark_does_not_hide_the_batch_that_hangs(
    watchdog: Watchdog, progress: Progress, causes: list[str]
) -> None:
    progress.began(7)
    progress.triggered()
    looks(watchdog, LOOKS + 1)
    assert "batch 7 began" in causes[0]


@pytest.mark.parametrize(
    "move",
    [
        lambda progress: progress.began(1),
        lambda progress: progress.ended(1),
        lambda progress: progress.waiting("redis"),
        lambda progress: progress.triggered(),
    ],
    ids=["began", "ended", "waiting", "triggered"],
)
def test_whatever_moves_keeps_it_quiet(
    watchdog: Watchdog, progress: Progress, causes: list[str], move: Callable[[Progress], None]
) -> None:
    for _ in range(5):
        move(progress)
        looks(watchdog, LOOKS)
    assert causes == []


def test_the_first_batch_may_take_three_times_as_long(causes: list[str]) -> None:
    cold = Progress()
    watchdog = Watchdog(cold, LOOKS, causes.append)
    cold.began(0)
    looks(watchdog, 3 * LOOKS)
    assert causes == []
    looks(watchdog, 1)
    assert len(causes) == 1


def test_a_batch_that_computes_may_take_ten_times_as_long(
    progress: Progress, causes: list[str]
) -> None:
    watchdog = Watchdog(progress, LOOKS, causes.append, computing=lambda: True)
    progress.began(7)
    looks(watchdog, 10 * LOOKS)
    assert causes == []
    looks(watchdog, 1)
    [cause] = causes
    assert f"{10 * LOOKS} looks since: batch 7 began" in cause


def test_ten_looks_at_a_batch_that_computes_count_as_one(
    progress: Progress, causes: list[str]
) -> None:
    answers = iter([True] * 10 + [False] * (LOOKS - 1))
    watchdog = Watchdog(progress, LOOKS, causes.append, computing=lambda: next(answers))
    progress.began(7)
    looks(watchdog, 1 + 10 + LOOKS - 2)
    assert causes == []
    looks(watchdog, 1)
    assert len(causes) == 1


def test_it_says_so_once(watchdog: Watchdog, causes: list[str]) -> None:
    looks(watchdog, 10 * LOOKS)
    assert len(causes) == 1


def test_an_end_has_its_time_whatever_still_moves(
    watchdog: Watchdog, progress: Progress, causes: list[str]
) -> None:
    watchdog.hurry()
    for _ in range(19):
        progress.waiting("redis")
        watchdog.look()
        watchdog.hurry()
    assert causes == []
    watchdog.look()
    assert len(causes) == 1
