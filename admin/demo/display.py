"""Shows a demo: bars on a terminal, periodic lines elsewhere, one line at the end."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from admin.demo.story import Story, Told, reasons
from simulation.fleet import FleetSnapshot

_BAR: Final = 50
"""Characters of a bar at 100 %."""


@dataclass(frozen=True, slots=True)
class Scene:
    """Everything that one picture shows; times in seconds."""

    story: Story
    fleet: FleetSnapshot | None
    starting: str
    """What the start waits for; empty from the first round on."""
    elapsed: float
    left: float
    metrics_url: str
    logs: str


def picture(scene: Scene) -> RenderableType:
    """The live view."""
    lines = [
        Text(_headline(scene), style="bold"),
        Text(_last_moves(scene)),
        Text(f"metrics {scene.metrics_url}   logs {scene.logs}   Ctrl-C ends", style="dim"),
    ]
    return Group(_bars(scene), *lines) if scene.fleet else Group(*lines)


def line(scene: Scene) -> str:
    """The scene as one line of text."""
    text = f"{scene.elapsed:4.0f} s  {_headline(scene)}"
    told, first = scene.story.last, scene.story.first
    if told is None or first is None:
        return text
    start = "start, " if told is first else ""
    return f"{text}, {start}{reasons(told.record)}"


def summary(story: Story, moves: int) -> str:
    """The demo's result; the range at its end is the median since the fleet was balanced."""
    if not story.rounds:
        return "no round saw the whole fleet: nothing was balanced"
    first, last, balanced = story.rounds[0], story.rounds[-1], story.balanced
    start = f"range {first.range:.1f} ->"
    if not balanced:
        return (
            f"{start} {last.range:.1f} points with {moves} moves,"
            f" not below {story.threshold:g} after {last.elapsed:.0f} s"
        )
    since = balanced[0].elapsed
    return (
        f"{start} {median(told.range for told in balanced):.1f} points with {moves} moves,"
        f" below {story.threshold:g} from {since:.0f} s on"
        f" ({since - first.elapsed:.0f} s after the first round)"
    )


def _headline(scene: Scene) -> str:
    left = f"{max(scene.left, 0):.0f} s left"
    told = scene.story.last
    if told is None:
        return f"no round yet: {scene.starting}, at most {max(scene.left, 0):.0f} s more"
    goal = f"goal below {scene.story.threshold:g}"
    moves = scene.fleet.moves if scene.fleet else 0
    return (
        f"round {told.record.round}, range {told.range:.1f} points ({goal}), {moves} moves, {left}"
    )


def _last_moves(scene: Scene) -> str:
    told = scene.story.last_with_moves
    if told is None:
        return "nothing moved yet"
    move = told.record.moves[0]
    return (
        f"last moves, round {told.record.round}: {reasons(told.record)}; "
        f"{move.bundle} {move.source} -> {move.destination}"
    )


def _bars(scene: Scene) -> Table:
    """A bar for each broker, and one for the range with its start (<) and its goal (|)."""
    assert scene.fleet is not None
    table = Table.grid(padding=(0, 1))
    brokers = scene.fleet.brokers
    usages = [broker.usage for broker in brokers.values()]
    colour = {max(usages): "red", min(usages): "blue"}
    for name, broker in brokers.items():
        bar = Text("█" * round(broker.usage * _BAR), style=colour.get(broker.usage, "green"))
        table.add_row(name, f"{100 * broker.usage:3.0f} %", f"{broker.bundles:3d} bundles", bar)
    first, last = scene.story.first, scene.story.last
    if first is not None and last is not None:
        table.add_row("range", f"{last.range:3.0f}", "| goal, < start", _range_bar(scene, first))
    return table


def _range_bar(scene: Scene, first: Told) -> Text:
    last = scene.story.last or first
    cells = ["█"] * _cells(last.range)
    cells += [" "] * (_BAR + 1 - len(cells))
    cells[_cells(first.range)] = "<"
    cells[_cells(scene.story.threshold)] = "|"
    return Text("".join(cells).rstrip())


def _cells(points: float) -> int:
    return min(round(points / 100 * _BAR), _BAR)
