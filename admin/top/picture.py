"""How figures are drawn in a line of a terminal."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from rich.text import Text

from trimtab.explaining.words import percent

WIDTH: Final = 20
"""Cells of a bar: five points of usage each."""
_EIGHTHS: Final = " ▏▎▍▌▋▊▉█"
_STEPS: Final = "▁▂▃▄▅▆▇█"


def bar(usage: float | None, overloaded: float) -> Text:
    """Usage (a fraction, None where no report says it) as a bar, red from ``overloaded`` on."""
    if usage is None:
        return Text("no report".ljust(WIDTH), style="dim")
    whole, part = divmod(round(8 * WIDTH * min(1.0, max(0.0, usage))), 8)
    drawn = "█" * whole + (_EIGHTHS[part] if part else "")
    style = "bold red" if usage >= overloaded else "cyan"
    return Text(drawn.ljust(WIDTH), style=style)


def spark(history: Iterable[float | None]) -> str:
    """A usage (fraction) after another, the last one on the right; a gap where none is known."""
    return "".join(
        " " if usage is None else _STEPS[min(7, max(0, int(8 * usage)))] for usage in history
    )


def share(usage: float | None) -> str:
    """A fraction in percent, for a column of them."""
    return "" if usage is None else percent(usage).rjust(7)
