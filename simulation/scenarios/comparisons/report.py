"""Shows a run as a page: one HTML file that needs no network.

Pictures show the first seed, the table covers all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import Any, Final

import numpy as np
import plotly.graph_objects as go

from simulation.scenarios.comparisons.comparing import by_strategy, cell, lines
from simulation.scenarios.outcomes.outcome import ScenarioOutcome
from trimtab.arrays import Floats

_COLOURS: Final = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
"""Okabe and Ito's palette, which most people can tell apart."""

_POINTS: Final = 2000
"""A line of more cycles is thinned: the picture has no finer resolution."""

_PAGE: Final = """\
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>{title}</title>
<style>
  body {{ font: 15px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; color: #222; }}
  table {{ border-collapse: collapse; font-variant-numeric: tabular-nums; }}
  th, td {{ padding: .2rem .8rem; border-bottom: 1px solid #ddd; text-align: right; }}
  th:first-child, td:first-child {{ text-align: left; }}
</style>
<h1>{title}</h1>
<p>{about}</p>
<p><code>{command}</code></p>
{body}
</html>
"""


def page(outcomes: Sequence[ScenarioOutcome], name: str, command: str) -> str:
    """The HTML of one scenario's outcomes, by strategy and seed."""
    groups = by_strategy(outcomes)
    scenario = outcomes[0].scenario
    first = [each[0] for each in groups.values()]
    seeds = ", ".join(str(each.scenario.seed) for each in next(iter(groups.values())))
    about = (
        f"{escape(scenario.about)}. {scenario.brokers} brokers, {scenario.bundles} bundles, "
        f"{scenario.cycles} cycles of {scenario.seconds:g} s, seeds {seeds}; pictures are of seed "
        f"{scenario.seed}."
    )
    return _PAGE.format(
        title=escape(name),
        about=about,
        command=escape(command),
        body="\n".join([_table(groups), *_pictures(first)]),
    )


def _table(groups: dict[str, list[ScenarioOutcome]]) -> str:
    head = "".join(f"<th>{escape(strategy)}</th>" for strategy in groups)
    rows = [
        f"<tr><td>{escape(line.title)}</td>"
        + "".join(f"<td>{cell(line, [o.figures for o in each])}</td>" for each in groups.values())
        + "</tr>"
        for line in lines([outcome for each in groups.values() for outcome in each])
    ]
    return (
        f"<table><tr><th></th>{head}</tr>{''.join(rows)}</table>"
        "<p>Median of the seeds, the worst in brackets. Ranges are of true usage, in percentage "
        "points.</p>"
    )


def _pictures(outcomes: Sequence[ScenarioOutcome]) -> Iterator[str]:
    figures = [
        _over_time(outcomes, "Range of usage, points", [100 * o.range for o in outcomes]),
        _over_time(outcomes, "Usage of the hottest broker, %", [100 * o.highest for o in outcomes]),
        _over_time(outcomes, "Moves so far", [np.cumsum(o.moves) for o in outcomes]),
        _moves(outcomes),
        *(_heat(outcome) for outcome in outcomes),
    ]
    for place, figure in enumerate(figures):
        # The library once, with the first picture.
        yield figure.to_html(full_html=False, include_plotlyjs=not place)


def _over_time(
    outcomes: Sequence[ScenarioOutcome], title: str, columns: Sequence[Any]
) -> go.Figure:
    figure = go.Figure()
    for place, (outcome, column) in enumerate(zip(outcomes, columns, strict=True)):
        at = _thinned(column.size)
        figure.add_scatter(
            x=at,
            y=column[at],
            name=outcome.strategy,
            line={"shape": "hv", "color": _COLOURS[place % len(_COLOURS)]},
        )
    return _laid_out(figure, title)


def _moves(outcomes: Sequence[ScenarioOutcome]) -> go.Figure:
    figure = go.Figure()
    for place, outcome in enumerate(outcomes):
        at = np.flatnonzero(outcome.moves)
        figure.add_scatter(
            x=at,
            y=outcome.moves[at],
            name=outcome.strategy,
            mode="markers",
            marker={"color": _COLOURS[place % len(_COLOURS)]},
        )
    return _laid_out(figure, "Moves of a cycle, where there were any")


def _heat(outcome: ScenarioOutcome) -> go.Figure:
    usage: Floats = 100 * outcome.levels.T
    figure = go.Figure(
        go.Heatmap(
            z=np.round(usage, 2),
            x=outcome.stride * np.arange(usage.shape[1]),
            y=np.arange(usage.shape[0]) + 1,
            zmin=0,
            zmax=max(100.0, float(np.nanmax(usage))),
            colorscale="Viridis",
            colorbar={"title": "%"},
        )
    )
    figure = _laid_out(figure, f"Usage of each broker, %: {outcome.strategy}")
    return figure.update_yaxes(title="broker")


def _laid_out(figure: go.Figure, title: str) -> go.Figure:
    figure.update_layout(title=title, template="plotly_white", height=380)
    return figure.update_xaxes(title="cycle")


def _thinned(cycles: int) -> Any:
    return np.arange(0, cycles, -(-cycles // _POINTS))
