"""`trimtab outcome`: what came of an intent, and the wait for it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import msgspec
import stamina
import typer

from admin.ending import FAILED, USAGE, end, end_unserved
from sinks.errors import SinkError
from sinks.redis.outcomes import Outcomes
from sinks.redis.server.connections import redis_client
from streaming.config import InvalidConfig, load_config
from trimtab.wire.outcome import Outcome, OutcomeState

_LONGEST_PAUSE_S: Final = 0.5
"""Between two looks. Shorter: more load on Redis; longer: the answer comes later."""

Wait = Annotated[
    float,
    typer.Option(min=0, help="Seconds to wait until it is done; 1 if it is not, 2 if refused."),
]
Id = Annotated[
    str,
    typer.Option("--id", help="A name of your own: the same request with it is carried out once."),
]


class _Unfinished(Exception):
    """Nothing final is known yet."""


def outcome(
    cluster: Annotated[str, typer.Argument(help="The cluster concerned.")],
    intent: Annotated[str, typer.Argument(help="The id that the command printed.")],
    wait: Wait = 0.0,
    json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
    config: Annotated[
        Path | None,
        typer.Option(help="A TOML file of settings; TRIMTAB_... variables override it."),
    ] = None,
) -> None:
    """Say what came of an intent of the last day: refused, accepted, done or expired."""
    try:
        url = load_config(config).redis_url.get_secret_value()
        found = find_outcome(url, cluster, intent, wait)
    except InvalidConfig as error:
        raise end("\n".join(error.problems), USAGE) from None
    except SinkError as error:
        raise end_unserved(error, config) from None
    if found is not None:
        print(msgspec.json.encode(found).decode() if json else found.state.value)
    # Without a wait an accepted one is an answer, and no failure.
    if found is None or found.final or wait:
        end_by(found, cluster, intent)


def find_outcome(url: str, cluster: str, intent: str, wait_s: float) -> Outcome | None:
    """The newest outcome: the final one, if it comes within ``wait_s``. Raises SinkError."""
    found: Outcome | None = None
    with redis_client(url) as client:
        outcomes = Outcomes(client)
        looks = stamina.retry_context(
            on=_Unfinished,
            attempts=None,
            timeout=max(wait_s, 1e-9),
            wait_initial=0.1,
            wait_max=_LONGEST_PAUSE_S,
        )
        try:
            for look in looks:
                with look:
                    found = outcomes.read(cluster, intent)
                    if found is None or not found.final:
                        raise _Unfinished
        except _Unfinished:
            pass
    return found


def end_by(found: Outcome | None, cluster: str, intent: str) -> None:
    """Say what an outcome means, and end the program unless the intent is done."""
    if found is None:
        raise end(
            f"no job has told of {intent} in {cluster}: it was not read yet, or a day ago\n"
            "Next: trimtab doctor",
            FAILED,
        )
    problems = f": {'; '.join(found.problems)}" if found.problems else ""
    match found.state:
        case OutcomeState.REFUSED:
            raise end(f"refused by {found.rule}{problems}", USAGE)
        case OutcomeState.EXPIRED:
            raise end(f"expired{problems}", FAILED)
        case OutcomeState.ACCEPTED:
            text = f"accepted, and not done yet\nNext: trimtab outcome {cluster} {intent} --wait 60"
            raise end(text, FAILED)
