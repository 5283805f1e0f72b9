"""Draws a run of the simulator as SVG: every broker's usage over the rounds, and the moves below.

The picture needs no legend and no style sheet: words stand beside what they name.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

import numpy as np

from trimtab.arrays import Floats, Ints

_WIDTH, _HEIGHT = 720, 320
_LEFT, _RIGHT, _TOP, _BOTTOM = 48, 610, 52, 222
_FLOOR: Final = 284
"""Where the bars of moves stand."""
_BAR: Final = 3.0
"""Height of one move."""
_GREY, _HOT, _COLD, _GUIDE = "#9aa5b1", "#d55e00", "#0072b2", "#5b4a9e"
"""Orange and blue are Okabe and Ito's, which most people can tell apart."""

_STYLE: Final = (
    "text{font:12px system-ui,sans-serif;fill:#2b3440;paint-order:stroke;stroke:#fff;"
    "stroke-width:3px}.title{font-weight:600;font-size:15px}.end{text-anchor:end}"
    ".middle{text-anchor:middle}"
)


@dataclass(frozen=True, slots=True, eq=False)
class Guide:
    """A line that the strategy compares usage with."""

    said: str
    usage: Floats
    """(rounds + 1,) where it is, as a fraction."""


@dataclass(frozen=True, slots=True, eq=False)
class Drawing:
    """What one picture shows."""

    title: str
    about: str
    levels: Floats
    """(rounds + 1, brokers) usage at the start and after each round, as a fraction."""
    moves: Ints
    """(rounds,) how many bundles moved in each."""
    guides: Sequence[Guide]


def draw(drawing: Drawing) -> str:
    """The SVG."""
    label = escape(f"{drawing.title}: {drawing.about}")
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
            f'width="{_WIDTH}" height="{_HEIGHT}" role="img" aria-label="{label}">',
            f"<title>{label}</title>",
            f"<style>{_STYLE}</style>",
            f'<rect width="{_WIDTH}" height="{_HEIGHT}" rx="6" fill="#fff"/>',
            _text(12, 22, drawing.title, "title"),
            _text(12, 40, drawing.about),
            *_axes(len(drawing.moves)),
            *_brokers(drawing.levels),
            *_guides(drawing.guides),
            *_range(drawing.levels[-1]),
            *_bars(drawing.moves),
            "</svg>\n",
        ]
    )


def _axes(rounds: int) -> Iterator[str]:
    for percent in range(0, 101, 25):
        y = _y(percent / 100)
        yield f'<path d="M{_LEFT} {y}H{_RIGHT}" stroke="#e3e7ec"/>'
        yield _text(_LEFT - 6, y + 4, f"{percent} %", "end")
    yield f'<path d="M{_LEFT} {_FLOOR}H{_RIGHT}" stroke="#e3e7ec"/>'
    yield _text(_LEFT - 6, _FLOOR, "moves", "end")
    for number in range(0, rounds + 1, 5):
        yield _text(_x(number, rounds), _FLOOR + 18, str(number), "middle")
    yield _text(_RIGHT + 14, _FLOOR + 18, "rounds")


def _brokers(levels: Floats) -> Iterator[str]:
    hot, cold = int(levels[0].argmax()), int(levels[0].argmin())
    for broker in range(levels.shape[1]):
        if broker not in (hot, cold):
            yield _line(levels[:, broker], _GREY, 'stroke-width="1.5"')
    for broker, colour, said, below in (
        (hot, _HOT, "busiest at the start", -6),
        (cold, _COLD, "idlest at the start", 15),
    ):
        yield _line(levels[:, broker], colour, 'stroke-width="2.5"')
        yield _text(_LEFT + 4, _y(levels[0, broker]) + below, said)


def _guides(guides: Sequence[Guide]) -> Iterator[str]:
    for guide in guides:
        yield _line(guide.usage, _GUIDE, 'stroke-dasharray="6 4"')
        if guide.said:
            yield _text(_RIGHT - 4, _y(guide.usage[-1]) - 5, guide.said, "end")


def _range(last: Floats) -> Iterator[str]:
    """The range of usage after the last round, beside the lines' ends."""
    high, low = _y(float(last.max())), _y(float(last.min()))
    yield f'<path d="M{_RIGHT + 4} {high}h6V{low}h-6" fill="none" stroke="#2b3440"/>'
    said = f"{100 * float(np.ptp(last)):.0f} points"
    yield _text(_RIGHT + 14, round((high + low) / 2, 1) + 4, said)


def _bars(moves: Ints) -> Iterator[str]:
    rounds = len(moves)
    for number in np.flatnonzero(moves).tolist():
        x, count = _x(number + 1, rounds), int(moves[number])
        top = round(_FLOOR - _BAR * count, 1)
        yield f'<path d="M{x} {_FLOOR}V{top}" stroke="#2b3440" stroke-width="9"/>'
        yield _text(x, top - 4, str(count), "middle")


def _line(usage: Floats, colour: str, more: str) -> str:
    points = " ".join(
        f"{_x(number, len(usage) - 1)},{_y(value)}" for number, value in enumerate(usage.tolist())
    )
    return f'<polyline points="{points}" fill="none" stroke="{colour}" {more}/>'


def _text(x: float, y: float, said: str, kind: str = "") -> str:
    named = f' class="{kind}"' if kind else ""
    return f'<text x="{x}" y="{round(y, 1)}"{named}>{escape(said)}</text>'


def _x(number: int, rounds: int) -> float:
    return round(_LEFT + (_RIGHT - _LEFT) * number / rounds, 1)


def _y(usage: float) -> float:
    return round(_BOTTOM - (_BOTTOM - _TOP) * usage, 1)
