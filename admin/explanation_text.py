"""How `trimtab why` prints an explanation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from simulation.replay.inquiry import Answer
from sinks.redis.answers.explanations import Found
from trimtab.explaining.words import iso, name_some
from trimtab.wire.explanation import Explanation, Nearest

_MOST: Final = 5
"""Most other rounds named."""


def show(
    console: Console, answer: Answer, found: Found | None = None, *, asked: bool = False
) -> None:
    """Print it; ``found`` is Redis's data on the subject, ``asked`` if this round was requested."""
    explanation = answer.explanation
    for line in _lines(answer):
        console.print(line, soft_wrap=True, highlight=False, markup=False)
    if found is not None:
        for line in _elsewhere(explanation, found, asked=asked):
            console.print(line, soft_wrap=True, highlight=False, markup=False)
    if explanation.options:
        console.print(_options(explanation), highlight=False)


def _lines(answer: Answer) -> Iterator[str]:
    explanation = answer.explanation
    place = f"{explanation.subject} in {explanation.cluster}"
    yield f"{place}, round {explanation.round} of {iso(explanation.at)}"
    ends = ""
    if explanation.source is not None and explanation.destination is not None:
        ends = f" from {explanation.source} to {explanation.destination}"
    yield f"{explanation.verdict}{ends}: {explanation.rule} ({explanation.strategy})"
    yield explanation.why
    if explanation.advice:
        yield explanation.advice
    yield from _figures(explanation)
    yield from _otherwise(answer)
    if explanation.until:
        yield f"this ends by itself at {iso(explanation.until)}"
    if not answer.as_recorded:
        yield "the replayed round is not what was recorded: trimtab replay says where they differ"


def _elsewhere(explanation: Explanation, found: Found, *, asked: bool) -> Iterator[str]:
    newest = found.kept[1] if found.kept is not None else explanation.round
    if not asked and newest != explanation.round:
        yield (
            f"the newest round is {newest}, which kept nothing of it: --round {newest} --replay "
            "explains it there"
        )
    others = [each for each in found.rounds if each != explanation.round]
    if others:
        yield f"{name_rounds(others)} too (--round)"


def name_rounds(rounds: Sequence[int]) -> str:
    """Say which rounds explain it."""
    if len(rounds) == 1:
        return f"round {rounds[0]} explains it"
    return f"rounds {name_some([*map(str, rounds)], _MOST)} explain it"


def _figures(explanation: Explanation) -> Iterator[str]:
    for broker, (before, after) in explanation.usage.items():
        yield f"expected usage of {broker}: {_change(before, after)} %"
    if explanation.range is not None:
        yield f"range of expected usage: {_change(*explanation.range)} points"


def _otherwise(answer: Answer) -> Iterator[str]:
    nearest, tried = answer.explanation.nearest, answer.tried
    if nearest is None:
        yield "no single setting is known that would change this"
        return
    yield f"otherwise with {_setting(nearest)}: {nearest.so_that}"
    if tried is not None:
        to = f" to {tried.destination}" if tried.destination is not None else ""
        yield f"tried: {tried.verdict}{to}, {tried.rule}: {tried.why}"


def _setting(nearest: Nearest) -> str:
    then, now = (msgspec.json.encode(each).decode() for each in (nearest.then, nearest.now))
    beyond = ""
    if not isinstance(nearest.then, bool | str) and not isinstance(nearest.now, bool | str):
        beyond = " or more" if nearest.then > nearest.now else " or less"
    return f"{nearest.setting} = {then}{beyond}, instead of {now}"


def _options(explanation: Explanation) -> Table:
    table = Table("could go to", "usage with it", "", box=None, pad_edge=False)
    table.columns[1].justify = "right"
    for each in explanation.options:
        usage = "" if each.usage is None else f"{100 * each.usage:.1f} %"
        table.add_row(escape(each.broker), usage, "chosen" if each.chosen else each.bar)
    return table


def _change(before: float, after: float) -> str:
    if before == after:
        return f"{100 * before:.1f}"
    return f"{100 * before:.1f} -> {100 * after:.1f}"
