"""Makes commands: the options that all share, the connection, and how an answer is shown.

A command that `reads` returns what to show; one that `acts` returns the change to ask for.
"""

from __future__ import annotations

import inspect
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple

import typer
from rich.console import Console

from admin.ending import end
from admin.exit_codes import UNFINISHED
from admin.output import Output, Shown, show
from admin.session import Refusal, Session, connect
from control.next_command import command
from trimtab.wire.intent import LONGEST_REASON

_WATCH_S: Final = 2.0
"""Between two looks of --watch: rounds come every few seconds at most."""
_ASK_S: Final = 30.0
"""How long one request of --wait waits; then it asks again."""

Cluster = Annotated[
    str,
    typer.Option(
        help="The cluster; default: the context's, or the only one.", envvar="TRIMTAB_CLUSTER"
    ),
]
Context = Annotated[
    str,
    typer.Option(
        help="One of `trimtab contexts list`; default: the current one.", envvar="TRIMTAB_CONTEXT"
    ),
]
Config = Annotated[
    Path | None,
    typer.Option(help="Kafka and Redis by a TOML file of settings, instead of a context."),
]
OutputOption = Annotated[Output, typer.Option("--output", "-o", help="The form of the answer.")]
Watch = Annotated[bool, typer.Option("--watch", help="Show it every 2 s until Ctrl-C.")]
Execute = Annotated[bool, typer.Option("--execute", help="Do it; otherwise it is only checked.")]
Reason = Annotated[
    str, typer.Option(help=f"Why, for the record; at most {LONGEST_REASON} characters.")
]
Wait = Annotated[
    float, typer.Option(min=0, help="Seconds to wait until it is done; exit code 9 if it is not.")
]
Id = Annotated[
    str, typer.Option("--id", help="Your name for the request, which is carried out once.")
]
Limit = Annotated[int, typer.Option(min=1, max=1_000, help="How many to list at most.")]
After = Annotated[str, typer.Option(help="Continue after this name; a page that is cut shows it.")]
Unchecked = Annotated[
    bool, typer.Option("--unchecked", help="Send it without a check; the job checks it anyway.")
]

_WHERE: Final[Mapping[str, tuple[Any, Any]]] = {
    "cluster": (Cluster, ""),
    "output": (OutputOption, Output.TABLE),
    "context": (Context, ""),
    "config": (Config, None),
}
_READING: Final = {**_WHERE, "watch": (Watch, False)}
_ACTING: Final = {
    "execute": (Execute, False),
    "reason": (Reason, ""),
    "wait": (Wait, 0.0),
    "own_id": (Id, ""),
    "unchecked": (Unchecked, False),
    **_WHERE,
}


class Change(NamedTuple):
    """A change to ask the API for; ``path`` is below the cluster's own."""

    method: str
    path: str
    body: object = None
    query: Mapping[str, object] = {}
    done: str = "done"
    """What ``--wait`` says at its end."""


def note_more(page: Mapping[str, Any]) -> list[str]:
    """What to say below a page of a list that goes on."""
    return [f"there are more: --after {page['next']}, or --limit"] if page["next"] else []


def reads(command: Callable[..., Shown]) -> Callable[..., None]:
    """Make a command that shows what this function returns, once or with --watch again and again;
    it gets its session first."""

    @wraps(command)
    def run(**given: Any) -> None:
        common = {name: given.pop(name) for name in _READING}
        with connect(common["context"], common["config"], common["cluster"]) as session:
            code = _show_all(lambda: command(session, **given), common["output"], common["watch"])
        raise typer.Exit(code)

    return _with_options(run, command, _READING)


def _show_all(find: Callable[[], Shown], output: Output, again: bool) -> int:
    shown = find()
    show(shown, output)
    with suppress(KeyboardInterrupt):
        while again:
            time.sleep(_WATCH_S)
            shown = find()
            Console().clear()
            show(shown, output)
    return shown.code


def acts(command: Callable[..., Change]) -> Callable[..., None]:
    """Make a command that asks for the change which this function returns. Without --execute the
    change is only checked and described."""
    return _with_options(_acting(command), command, _ACTING)


def acts_at_once(command: Callable[..., Change]) -> Callable[..., None]:
    """Make a command that asks for a change without a dry run: it is urgent and harmless."""
    run = _acting(command)
    options = {name: option for name, option in _ACTING.items() if name != "execute"}

    @wraps(run)
    def act(**given: Any) -> None:
        run(execute=True, **given)

    return _with_options(act, command, options)


def _acting(command: Callable[..., Change]) -> Callable[..., None]:
    @wraps(command)
    def run(**given: Any) -> None:
        common = {name: given.pop(name) for name in _ACTING}
        with connect(common["context"], common["config"], common["cluster"]) as session:
            session.reason, session.own_id = common["reason"], common["own_id"]
            change = command(session, **given)
            query = {
                **change.query,
                "dryRun": "" if common["execute"] else True,
                "unchecked": common["unchecked"] or "",
            }
            told = session.ask(change.method, session.path(change.path), change.body, query)
            _tell(told, common["output"])
            if common["execute"] and common["wait"]:
                await_done(session, told["id"], common["wait"], change.done)

    return run


def _tell(told: Mapping[str, Any], output: Output) -> None:
    """Show a change: what is checked, or the id of what is sent."""
    dry = told["state"] == "checked"
    column = "what" if dry else "id"
    if output in (Output.TABLE, Output.WIDE):
        print(f"would {told['what']}" if dry else told["id"], flush=True)
        for note in told["notes"] if dry else [*told["notes"], told["what"]]:
            typer.echo(note, err=True)
    else:
        show(Shown(told, [told], {column: str}, notes=told["notes"]), output)
    if dry:
        again = command(*sys.argv[1:], "--execute")
        typer.echo(f"nothing is changed yet\nNext: {again}", err=True)


def await_done(session: Session, intent: str, wait_s: float, done: str = "done") -> None:
    """Wait until an intent is done, and say so; raises Refusal unless it is."""
    until = time.monotonic() + wait_s
    while True:
        left = max(0.0, until - time.monotonic())
        try:
            found = session.get(f"outcomes/{intent}", wait=min(left, _ASK_S))
        except Refusal as error:
            if error.status != 404:
                raise
            found = {"state": "not read by a job"}
        match found["state"]:
            case "done":
                typer.echo(done, err=True)
                return
            case "refused" | "expired":
                raise refusal_of(found)
        if left <= 0:
            again = command("outcome", intent, "--cluster", session.cluster, "--wait", "60")
            raise end(f"{found['state']}, and not done yet\nNext: {again}", UNFINISHED)


def refusal_of(found: Mapping[str, Any]) -> Refusal:
    """The error for an outcome that is not done."""
    problems = "; ".join(found.get("problems", ())) or found["state"]
    status = 412 if found["state"] == "refused" else 500
    return Refusal(status, problems, found.get("rule", ""), "")


def _with_options(
    run: Callable[..., None],
    command: Callable[..., object],
    options: Mapping[str, tuple[Any, Any]],
) -> Callable[..., None]:
    """The command with the arguments of the function but its session, and with these options."""
    _, *own = inspect.signature(command, eval_str=True).parameters.values()
    shared = [
        inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation
        )
        for name, (annotation, default) in options.items()
    ]
    keyed = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in own]
    run.__signature__ = inspect.Signature([*keyed, *shared])  # type: ignore[attr-defined]
    return run
