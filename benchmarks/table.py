"""A run as a table for the terminal."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text

from benchmarks.figures import Figure, Run

_HOLDS = {True: Text("holds", "green"), False: Text("missed", "bold red"), None: Text("")}


def table(run: Run) -> Table:
    load = run.machine.load_before[0]
    title = f"{run.benchmark}: {run.seconds:.0f} s on {run.machine.cores} cores, load {load:.1f}"
    shown = Table(title=title, title_justify="left")
    shown.add_column("figure")
    shown.add_column("value", justify="right")
    shown.add_column("unit")
    shown.add_column("bar")
    shown.add_column("")
    shown.add_column("what it is")
    for figure in run.figures:
        value, bar = number(figure.value), bar_of(figure)
        shown.add_row(figure.name, value, figure.unit, bar, _HOLDS[figure.holds], figure.says)
    return shown


def number(value: float) -> str:
    """Digits as people read them: 0.257, 12.4, 231,000."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def bar_of(figure: Figure) -> str:
    if figure.bar is None:
        return ""
    bar = f"{figure.bar.limit.value} {number(figure.bar.value)}"
    return f"{bar} ({figure.bar.where})" if figure.bar.where else bar
