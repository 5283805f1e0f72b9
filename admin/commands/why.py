"""`trimtab why`: explains a round's decision about a bundle or broker, from Redis or a replay."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Annotated, Final

import msgspec
import typer
from rich.console import Console

from admin.commands.tools.options import Config
from admin.commands.tools.replay import Impossible, bound_of
from admin.ending import end, end_unserved
from admin.exit_codes import USAGE
from admin.explanation_text import name_rounds, show
from admin.output import Output, Shown
from admin.output import show as print_document
from admin.session import Session, connect
from admin.verbs import Cluster, Context, OutputOption
from control.next_command import command
from simulation.replay.batches import Contradiction
from simulation.replay.inquiry import Answer, explain_by_replay
from simulation.replay.recorded import Missing, RecordedTopics
from simulation.replay.run import Readers
from simulation.replay.span import Ambiguous, Bound
from sinks.errors import SinkError
from sinks.redis.answers.explanations import Explanations, Found
from sinks.redis.server.connections import redis_client
from streaming.config import InvalidConfig, load_config
from trimtab.explaining.words import iso
from trimtab.nearby import nearby
from trimtab.wire.explanation import Explanation

UNKNOWN: Final = 1


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
    cluster: Cluster = "",
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
    query: Annotated[
        str | None, typer.Option(help="Id of the query, if several match the replay.")
    ] = None,
    output: OutputOption = Output.TABLE,
    context: Context = "",
    config: Config = None,
) -> None:
    """Say why a bundle moved or stayed, or what a broker gave and got; exit code 1 if nothing
    is stored about it there."""
    found: Found | None = None
    try:
        with connect(context, config, cluster) as session:
            cluster = session.cluster
            if session.plane is None and not replay:
                found, answer = _told(session, subject, wanted)
                return _show(found, answer, output, wanted)
        if replay:
            answer = _replayed(subject, cluster, wanted, kafka, query, config)
        else:
            number, found, named = _stored(subject, cluster, wanted, redis, config)
            answer = _answer(found, named, subject, cluster, number)
    except InvalidConfig as error:
        raise end(error.told(), USAGE) from None
    except Impossible as error:
        raise end(str(error), USAGE) from None
    except SinkError as error:
        raise end_unserved(error, None if kafka or redis else config, kafka, redis) from None
    return _show(found, answer, output, wanted)


def _show(found: Found | None, answer: Answer, output: Output, wanted: Bound | None) -> None:
    if output in (Output.TABLE, Output.WIDE):
        show(Console(), answer, found, asked=wanted is not None)
    else:
        print_document(Shown(_for_programs(answer, found)), output)


def _told(session: Session, subject: str, wanted: Bound | None) -> tuple[Found, Answer]:
    """The API's answer."""
    if wanted is not None and not wanted.is_number:
        raise Impossible("--round: the API knows rounds by their numbers: trimtab rounds list")
    told = session.get("why", subject=subject, round=None if wanted is None else wanted.at)
    explanation = msgspec.convert(told["explanation"], Explanation)
    found = Found(explanation, tuple(told["rounds"]), tuple(told["kept"]) or None)
    return found, Answer(explanation, None, as_recorded=True)


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
                    f"Next: {_ask(subject, cluster, '--round', then, '--replay')}",
                    UNKNOWN,
                )
        found = kept.read(cluster, subject, number)
        return number, found, [] if found.rounds else kept.subjects(cluster)


def _ask(subject: str, cluster: str, *options: str) -> str:
    return command("why", subject, "--cluster", cluster, *options)


def _answer(
    found: Found, named: list[str], subject: str, cluster: str, number: int | None
) -> Answer:
    if found.explanation is not None:
        return Answer(found.explanation, None, as_recorded=True)
    if found.kept is None:
        raise end(
            f"nothing is kept of any round of {cluster}: is that its name, explain.rounds above 0, "
            "and trimtab_unexplained_rounds of the job 0?\n"
            "Next: trimtab clusters list",
            UNKNOWN,
        )
    first, last = found.kept
    if number is not None and number > last:
        raise end(
            f"there is no round {number} of {cluster} yet: the newest that is kept is {last}\n"
            f"Next: {_ask(subject, cluster)}",
            UNKNOWN,
        )
    wanted = last if number is None else number
    where = f"round {number}" if number is not None else f"rounds {first} to {last}"
    other = f"; {name_rounds(found.rounds)}" if found.rounds else f"; {nearby(subject, named)}"
    raise end(
        f"{where} kept nothing of {subject}{other}: a round stores only what it moved "
        "or refused, and the brokers involved\n"
        f"Next: {_ask(subject, cluster, '--round', str(wanted), '--replay')}",
        UNKNOWN,
    )


def _for_programs(answer: Answer, found: Found | None) -> dict[str, object]:
    return {
        "v": 1,
        "explanation": answer.explanation,
        "tried": answer.tried,
        "asRecorded": answer.as_recorded,
        "rounds": [] if found is None else found.rounds,
        "kept": None if found is None else found.kept,
    }
