"""`trimtab top` shows a cluster's brokers, what rounds decided, and why."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from rich.text import Text
from textual.pilot import Pilot
from textual.widgets import DataTable, Static
from typer.testing import CliRunner

from admin import cli
from admin.exit_codes import USAGE
from admin.session import Refusal
from admin.top.app import Top
from admin.top.looking import Look
from admin.top.picture import WIDTH, bar, spark

BUNDLE = "t/n/0x00000000_0x80000000"
MARKUP = "[red]b:1[/red]"


class Told:
    """Answers as the API gives them; a round later every figure is another."""

    cluster = "east"

    def __init__(self, *, more: str | None = None) -> None:
        self.round = 3
        self.away = False
        self.more = more

    def get(self, path: str, /, **query: object) -> Any:
        if self.away:
            raise Refusal(503, "Kafka at k:9 is away", "", path)
        history = [number / 10 for number in range(1, self.round + 1)]
        return {
            "overview": OVERVIEW,
            "heat-map": {"rows": [broker("a:1", history), LOST], "next": self.more},
            "decisions": [MOVED],
            "why": {"explanation": EXPLAINED | {"subject": query.get("subject")}},
        }[path]


def broker(name: str, history: list[float]) -> dict[str, Any]:
    usage = history[-1] if history else None
    return {
        "broker": name,
        "state": "serving",
        "usage": usage,
        "average": usage,
        "bundles": 1_200,
        "history": history,
    }


FOUND = {"grade": "look", "what": "lost: b:1", "next": "trimtab brokers list"}
OVERVIEW = {
    "grade": "look",
    "cluster": "east",
    "headline": "2 brokers",
    "findings": [FOUND],
    "thresholds": {"overloaded": 0.85},
}
LOST = broker(MARKUP, [])
MOVED = {
    "round": 3,
    "at": 3_000,
    "decision": "move",
    "bundle": BUNDLE,
    "source": "a:1",
    "destination": MARKUP,
    "reason": "out-of-range",
}
EXPLAINED = {"round": 3, "verdict": "gives", "rule": "out-of-range", "why": "it is the busiest"}


@pytest.mark.parametrize(
    ("usage", "drawn"),
    [
        (0.0, ""),
        (0.5, "█" * 10),
        (0.525, "█" * 10 + "▌"),
        (1.0, "█" * WIDTH),
        (7.0, "█" * WIDTH),
        (None, "no report"),
    ],
)
def test_a_bar_is_as_long_as_the_usage(usage: float | None, drawn: str) -> None:
    assert bar(usage, 0.85).plain == drawn.ljust(WIDTH)


def test_an_overloaded_broker_is_red() -> None:
    assert bar(0.85, 0.85).style != bar(0.84, 0.85).style


def test_usage_over_time_is_drawn_by_its_height() -> None:
    assert spark([0.0, 0.5, 0.99, 1.0, 3.0]) == "▁▅███"
    assert spark([0.0, None, 1.0]) == "▁ █"


@pytest.mark.parametrize("more", [None, "z:1"])
def test_a_look_has_the_usage_of_the_last_rounds_and_says_whether_there_are_more_brokers(
    more: str | None,
) -> None:
    told = Told(more=more)
    look = Look(told)
    assert look.again().brokers[0]["history"] == [0.1, 0.2, 0.3]
    told.round = 5
    seen = look.again()
    assert seen.brokers[0]["history"] == [0.1, 0.2, 0.3, 0.4, 0.5]
    assert seen.more is (more is not None)


def shown(told: Told, watch: Callable[[Top, Pilot[None]], Awaitable[None]]) -> None:
    async def run() -> None:
        app = Top(Look(told), 3_600.0)
        async with app.run_test(size=(140, 40)) as pilot:
            await app.workers.wait_for_complete()
            await pilot.pause()
            await watch(app, pilot)

    asyncio.run(run())


def cells(app: Top, table: str) -> list[list[str]]:
    found = app.query_one(table, DataTable)
    return [[str(cell) for cell in found.get_row_at(row)] for row in range(found.row_count)]


def text_of(app: Top, name: str) -> str:
    content = app.screen.query_one(name, Static).content
    assert isinstance(content, Text)
    return content.plain


def test_brokers_findings_and_decisions_are_on_the_screen() -> None:
    async def watch(app: Top, _: Pilot[None]) -> None:
        hot, lost = cells(app, "#brokers")
        assert (hot[0], hot[2].strip(), hot[4], hot[6]) == ("a:1", "30.0 %", "1,200", "▁▂▃")
        assert (lost[0], lost[1].strip()) == (MARKUP, "no report")
        assert "lost: b:1\n        Next: trimtab brokers list" in text_of(app, "#status")
        [moved] = cells(app, "#decisions")
        assert moved[2:] == ["move", BUNDLE, "a:1", MARKUP, "out-of-range"]

    shown(Told(), watch)


@pytest.mark.parametrize(("table", "subject"), [("#brokers", "a:1"), ("#decisions", BUNDLE)])
def test_a_row_is_explained(table: str, subject: str) -> None:
    async def watch(app: Top, pilot: Pilot[None]) -> None:
        app.query_one(table).focus()
        await pilot.press("enter")
        await app.workers.wait_for_complete()
        await pilot.pause()
        assert text_of(app, "#why Static").startswith(f"{subject} in round 3: gives, out-of-range")
        await pilot.press("escape")
        assert len(app.screen_stack) == 1

    shown(Told(), watch)


def test_while_nothing_answers_the_last_figures_stay_and_are_said_to_be_old() -> None:
    told = Told()

    async def watch(app: Top, pilot: Pilot[None]) -> None:
        for away, round_ in ((True, 4), (False, 5)):
            told.away, told.round = away, round_
            app._begin()
            await app.workers.wait_for_complete()
            await pilot.pause()
            assert app.query_one("#away").display is away
            assert app.query_one("#brokers").has_class("old") is away
            assert cells(app, "#brokers")[0][2].strip() == ("30.0 %" if away else "50.0 %")
            if away:
                assert "Kafka at k:9 is away" in text_of(app, "#away")

    shown(told, watch)


def test_the_cursor_stays_on_its_broker() -> None:
    told = Told()

    async def watch(app: Top, pilot: Pilot[None]) -> None:
        table = app.query_one("#brokers", DataTable)
        table.focus()
        await pilot.press("down")
        assert table.cursor_row == 1
        app._begin()
        await app.workers.wait_for_complete()
        await pilot.pause()
        assert table.cursor_row == 1

    shown(told, watch)


def test_without_a_terminal_another_command_is_named() -> None:
    done = CliRunner().invoke(cli.build_app(["top"]), ["top"])
    assert done.exit_code == USAGE
    assert "Next: trimtab status -o json" in done.stderr
