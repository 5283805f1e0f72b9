"""`trimtab replay`: replays a recorded span and compares it with the recording."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from typing import Annotated, Final

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from admin.commands.tools.options import Config
from admin.ending import end, end_unserved
from admin.exit_codes import USAGE
from simulation.replay.batches import Contradiction
from simulation.replay.recorded import Missing, RecordedTopics
from simulation.replay.run import Readers
from simulation.replay.span import Ambiguous, Asked, Bound
from simulation.replay.verdict import ReplayVerdict, judge_run
from sinks.errors import SinkError
from streaming.config import InvalidConfig, load_config
from trimtab.explaining.words import iso
from trimtab.shedding import SHEDDERS
from trimtab.wire.rounds import RoundRecord, ShadowSide

MOST_ROUNDS: Final = 40
"""Most rounds shown of two strategies side by side; the sums count all."""


class Impossible(LookupError):
    """The span cannot be replayed; says why, and what to do."""


def bound_of(text: str) -> Bound:
    """Parse a batch's number, or an ISO 8601 time, in UTC unless it says otherwise."""
    if text.isdecimal():
        return Bound(int(text), is_number=True)
    try:
        time = datetime.fromisoformat(text)
    except ValueError as error:
        raise typer.BadParameter(
            f"{text}: neither the number of a batch nor a time like 2026-01-31T12:00:00Z"
        ) from error
    time = time if time.tzinfo else time.replace(tzinfo=UTC)
    return Bound(round(1000 * time.timestamp()))


def strategy_of(text: str) -> str:
    """Check that the strategy exists."""
    if text and text not in SHEDDERS:
        raise typer.BadParameter(f"{text}: no such strategy; there are {', '.join(SHEDDERS)}")
    return text


def replay(  # noqa: PLR0913 - the options of a command line
    since: Annotated[
        Bound,
        typer.Option("--from", parser=bound_of, help="A batch's number, or a time (ISO)."),
    ],
    until: Annotated[Bound, typer.Option("--to", parser=bound_of, help="That batch too.")],
    kafka: Annotated[
        str | None, typer.Option("--kafka", "--bootstrap", help="Instead of the settings' own.")
    ] = None,
    cluster: Annotated[str | None, typer.Option(help="Only this cluster.")] = None,
    query: Annotated[str | None, typer.Option(help="Id of the query, if several match.")] = None,
    strategy: Annotated[
        str, typer.Option(parser=strategy_of, help="Also show what this strategy would do.")
    ] = "",
    config: Config = None,
) -> None:
    """Run recorded batches again; exit code 0 if rounds and commands come out the same, byte for
    byte; 1 if they do not; 2 if that cannot be decided."""
    if since.is_number == until.is_number and since.at > until.at:
        raise end("--from is after --to: nothing lies between; exchange the two", USAGE)
    try:
        settings = load_config(config).kafka
        asked = Asked(since, until, query, cluster)
        address = kafka or settings.bootstrap
        verdict = run_replay(lambda: RecordedTopics(address, settings.client), asked, strategy)
    except InvalidConfig as error:
        raise end(error.told(), USAGE) from None
    except Impossible as error:
        raise end(str(error), USAGE) from None
    except SinkError as error:
        raise end_unserved(error, None if kafka else config, kafka) from None
    show(Console(), verdict, strategy)
    raise typer.Exit(verdict.status)


def run_replay(
    opened: Callable[[], RecordedTopics], asked: Asked, shadow: str = ""
) -> ReplayVerdict:
    """Replay the span; raises Impossible, KafkaUnavailable and Misconfigured."""
    with Readers(opened) as readers:
        try:
            return judge_run(readers, asked, shadow)
        except (Missing, Ambiguous) as error:
            raise Impossible(str(error)) from error
        except Contradiction as error:
            raise Impossible(f"{error}: ask for a span before or after that") from error


def show(console: Console, verdict: ReplayVerdict, shadow: str = "") -> None:
    """Print the whole verdict."""
    table = Table(show_header=False, box=None, pad_edge=False)
    for name, text in _figures(verdict):
        table.add_row(name, escape(text))
    console.print(table, highlight=False)
    if shadow:
        _show_shadow(console, verdict, shadow)
    for line in _trouble(verdict):
        # Not wrapped, so that both sides are one above the other.
        console.print(line, soft_wrap=True, highlight=False, markup=False)


def _figures(verdict: ReplayVerdict) -> Iterator[tuple[str, str]]:
    span, issued = verdict.span, verdict.issued
    yield "query", span.query
    times = f", {' to '.join(map(iso, verdict.times))}" if verdict.times else ""
    yield "batches", f"{span.first} to {span.last}: {verdict.batches}{times}"
    if span.starts is None:
        yield "from", f"the query's first batch, {verdict.before} batches before"
    for cluster, head in sorted((span.starts or {}).items()):
        yield "from", f"what was held of {cluster} after batch {head}"
    yield "rounds", f"{verdict.rounds} the same, {len(verdict.unlike)} not"
    yield "requests", f"{issued.requests}, accepted {issued.accepted}"
    unlike = len(issued.differences)
    yield "commands", f"{issued.commands} the same, byte for byte, {unlike} not"


def _trouble(verdict: ReplayVerdict) -> Iterator[str]:
    issued, first = verdict.issued, verdict.first_difference
    if first is not None:
        yield f"first difference: batch {first.batch}, {first.subject}"
        yield f"  recorded {first.recorded}"
        yield f"  replayed {first.again}"
    alike = sum(each.decided_alike for each in verdict.unlike)
    if alike:
        yield (
            f"{alike} of {len(verdict.unlike)} rounds that differ decided the same, and only what "
            "they remember differs: recorded by another version?"
        )
    if verdict.left_out:
        yield f"{verdict.left_out} rounds left out: nothing was exported of their clusters before"
    if issued.expired:
        yield f"{issued.expired} commands cannot be compared: trimtab.commands has dropped them"
    if issued.untold:
        yield (
            f"{len(issued.untold)} requests cannot be judged, {issued.untold[0]} first: "
            "trimtab.ownership does not have their outcomes; not yet, or no longer"
        )


def _show_shadow(console: Console, verdict: ReplayVerdict, shadow: str) -> None:
    """Print side by side the rounds in which either strategy moved anything."""
    moved = [each for each in verdict.beside if any(s.moves for s in _sides(each))]
    headings = ("time", "cluster", "range", "moves", f"{shadow}: range", "moves")
    table = Table(*headings, box=None, pad_edge=False)
    table.columns[0].no_wrap = True
    for record in moved[:MOST_ROUNDS]:
        figures = [text for s in _sides(record) for text in (_percent(s.range), str(s.moves))]
        table.add_row(iso(record.at)[:19], escape(record.cluster), *figures)
    console.print(table, highlight=False)
    if len(moved) > MOST_ROUNDS:
        console.print(f"and {len(moved) - MOST_ROUNDS} rounds more", highlight=False)
    for line in _totals(verdict.beside):
        console.print(line, highlight=False, markup=False, soft_wrap=True)
    console.print(
        f"What {shadow} wants happens in a world of its own, whose ranges are predicted; the moves "
        "that were recorded do not happen there. Sums start where the replay begins, and again "
        "where the job's own strategy changes.",
        soft_wrap=True,
        highlight=False,
    )


def _totals(records: Iterable[RoundRecord]) -> Iterator[str]:
    """A line for each side of each comparison; a cluster has several if its strategy changed."""
    last = {(each.cluster, each.shadow.since): each for each in records if each.shadow}
    several = Counter(cluster for cluster, _ in last)
    for (cluster, since), record in sorted(last.items()):
        name = f"{cluster} from {iso(since)[:19]}" if several[cluster] > 1 else cluster
        for side in _sides(record):
            yield (
                f"{name}, {side.strategy}: {side.total_moves} moves, {side.total_bounces} of them "
                f"bounces, mean range {_percent(side.mean_range)}"
            )


def _sides(record: RoundRecord) -> tuple[ShadowSide, ...]:
    return (record.shadow.champion, record.shadow.challenger) if record.shadow else ()


def _percent(fraction: float | None) -> str:
    return "" if fraction is None else f"{100 * fraction:.1f} %"
