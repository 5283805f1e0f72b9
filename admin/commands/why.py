"""`trimtab why`: explains a round's decision on a bundle or broker, from Redis or by a replay."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Final

import msgspec
import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from admin.commands.options import Config, Json
from admin.commands.replay import Impossible, bound_of
from admin.ending import USAGE, end, end_unserved
from simulation.replay.batches import Contradiction
from simulation.replay.inquiry import Answer, explain_by_replay
from simulation.replay.recorded import Missing, RecordedTopics
from simulation.replay.run import Readers
from simulation.replay.span import Ambiguous, Bound, iso
from sinks.errors import SinkError
from sinks.redis.explanations import Explanations, Found
from sinks.redis.server.connections import redis_client
from streaming.config import InvalidConfig, load_config
from trimtab.explaining.words import name_some
from trimtab.nearby import nearby
from trimtab.wire.explanation import Explanation, Nearest

UNKNOWN: Final = 1
_MOST: Final = 5
"""Most other rounds named."""


def round_of(text: str) -> Bound:
    """Parse the number of a round, or a time."""
    if text != "0":
        with suppress(typer.BadParameter):
            return bound_of(text)
    raise typer.BadParameter(
        f"{text}: neither the number of a round nor a time like 2026-01-31T12:00:00Z"
    )


def why(  # noqa: PLR0913 - the options of a command line
    subject: Annotated[str, typer.Argument(help="A bundle or a broker.")],
    cluster: Annotated[str, typer.Option(help="Its cluster.")],
    wanted: Annotated[
        Bound | None,
        typer.Option(
            "--round",
            parser=round_of,
            help="A number, or a time (ISO): the last one then. Default: the newest with it.",
        ),
    ] = None,
    redis: Annotated[
        str | None, typer.Option(help="URL; else the settings'.", envvar="TRIMTAB_REDIS_URL")
    ] = None,
    replay: Annotated[
        bool, typer.Option("--replay", help="Run the round again from Kafka; needs --round.")
    ] = False,
    kafka: Annotated[str | None, typer.Option(help="Instead of the settings' own.")] = None,
    query: Annotated[str | None, typer.Option(help="Of a replay, where several match.")] = None,
    json: Json = False,
    config: Config = None,
) -> None:
    """Say why a bundle moved or stayed, or what a broker gave and got; 1 if nothing is kept of it
    there."""
    try:
        if replay:
            found, answer = None, _replayed(subject, cluster, wanted, kafka, query, config)
        else:
            number, found, named = _stored(subject, cluster, wanted, redis, config)
            answer = _answer(found, named, subject, cluster, number)
    except (InvalidConfig, Impossible) as error:
        raise end(str(error), USAGE) from None
    except SinkError as error:
        raise end_unserved(error, None if kafka or redis else config, kafka, redis) from None
    if json:
        print(msgspec.json.encode(_for_programs(answer, found)).decode())
        return
    show(Console(), answer, found, asked=wanted is not None)


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


def _replayed(  # noqa: PLR0913 - the options of a command line
    subject: str,
    cluster: str,
    wanted: Bound | None,
    kafka: str | None,
    query: str | None,
    config: Path | None,
) -> Answer:
    if wanted is None:
        raise Impossible("--replay needs --round: the number of a round, or a time")
    settings = load_config(config).kafka
    address = kafka or settings.bootstrap
    with Readers(lambda: RecordedTopics(address, settings.client)) as readers:
        try:
            return explain_by_replay(readers, cluster, wanted, subject, query)
        except (Missing, Ambiguous) as error:
            raise Impossible(str(error)) from error
        except Contradiction as error:
            raise Impossible(
                f"{error}: ask for a round before or after that, or of another --query"
            ) from error


def _stored(
    subject: str, cluster: str, wanted: Bound | None, redis: str | None, config: Path | None
) -> tuple[int | None, Found, list[str]]:
    """The number of the requested round, its stored data, and what rounds explain if none explains
    the subject."""
    url = redis or load_config(config).redis_url.get_secret_value()
    with redis_client(url) as client:
        kept, number = Explanations(client), None
        if wanted is not None:
            number = wanted.at if wanted.is_number else kept.round_until(cluster, wanted.at)
            if number is None:
                then = iso(wanted.at)
                raise end(
                    f"no round of {cluster} at or before {then} is stored\n"
                    f"Next: trimtab why {subject} --cluster {cluster} --round {then} --replay",
                    UNKNOWN,
                )
        found = kept.read(cluster, subject, number)
        return number, found, [] if found.rounds else kept.subjects(cluster)


def _answer(
    found: Found, named: list[str], subject: str, cluster: str, number: int | None
) -> Answer:
    if found.explanation is not None:
        return Answer(found.explanation, None, as_recorded=True)
    if found.kept is None:
        raise end(
            f"nothing is kept of any round of {cluster}: is that its name, explain.rounds above 0, "
            "and trimtab_unexplained_rounds of the job 0?\n"
            f"Next: trimtab settings show {cluster} (it names the clusters that have rounds)",
            UNKNOWN,
        )
    first, last = found.kept
    if number is not None and number > last:
        raise end(
            f"there is no round {number} of {cluster} yet: the newest that is kept is {last}\n"
            f"Next: trimtab why {subject} --cluster {cluster}",
            UNKNOWN,
        )
    wanted = last if number is None else number
    where = f"round {number}" if number is not None else f"rounds {first} to {last}"
    other = f"; {_explain(found.rounds)}" if found.rounds else f"; {nearby(subject, named)}"
    raise end(
        f"{where} kept nothing of {subject}{other}: a round stores only what it moved "
        "or refused, and the brokers involved\n"
        f"Next: trimtab why {subject} --cluster {cluster} --round {wanted} --replay",
        UNKNOWN,
    )


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
        yield f"{_explain(others)} too (--round)"


def _explain(rounds: Sequence[int]) -> str:
    """That these rounds explain it."""
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


def _for_programs(answer: Answer, found: Found | None) -> dict[str, object]:
    return {
        "v": 1,
        "explanation": answer.explanation,
        "tried": answer.tried,
        "asRecorded": answer.as_recorded,
        "rounds": [] if found is None else found.rounds,
        "kept": None if found is None else found.kept,
    }
