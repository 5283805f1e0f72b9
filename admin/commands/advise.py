"""`trimtab advise`: how many brokers a cluster needs, and what the fleet would look like."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from admin.output import Shown, share, text
from admin.session import Session
from admin.verbs import reads
from control.next_command import command


@reads
def advise(  # noqa: PLR0913 - the options of a command line
    session: Session,
    days: Annotated[float, typer.Option(min=0.01, max=31, help="Recorded days to look at.")] = 7.0,
    add: Annotated[int, typer.Option(min=0, max=1000, help="Try with this many more brokers.")] = 0,
    like: Annotated[str, typer.Option(help="A broker with the hardware of the added ones.")] = "",
    remove: Annotated[
        list[str] | None, typer.Option(help="Try without this broker; repeatable.")
    ] = None,
    drain: Annotated[
        list[str] | None, typer.Option(help="Try with this broker empty; repeatable.")
    ] = None,
) -> Shown:
    """Say how many brokers the load needs, and what the fleet would look like with more or fewer.

    Without --add, --remove or --drain it advises by the recorded days: one broker may be lost at
    their peak, and the rest stays below round.overloaded_threshold. Nothing is changed.
    """
    if add or remove or drain:
        change = {"add": add, "like": like, "remove": remove or [], "drain": drain or []}
        tried = session.ask("POST", session.path("what-if"), change)
        return _shown(tried, tried, [])
    found = session.get("advise", days=days)
    notes = [
        f"peak: {found['peak']['brokers']} brokers at {share(found['peak']['usage_mean'])}; "
        f"wanted: {found['wanted']} of now {found['brokers']}"
    ]
    if found["remove"]:
        least = found["remove"][0]
        drained = command("plans", "drain", least, "--cluster", session.cluster, "--execute")
        notes += [f"Next: {drained}"]
    return _shown(found, found["whatIf"], notes)


def _shown(document: object, tried: Mapping[str, Any], notes: list[str]) -> Shown:
    rows = [{"fleet": when, **tried[when]} for when in ("before", "after")]
    shares = dict.fromkeys(("usage_min", "usage_mean", "usage_max", "usage_range"), share)
    moved = f"{tried['moves']} moves in {tried['rounds']} rounds"
    left = [f"{broker} would keep {count} bundles" for broker, count in tried["left"].items()]
    columns = {"fleet": text, "brokers": text, **shares}
    return Shown(document, rows, columns, notes=[moved, *left, *tried["problems"], *notes])
