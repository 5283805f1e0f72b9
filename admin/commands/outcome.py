"""`trimtab outcome`: the outcome of an intent, and the wait for it."""

from __future__ import annotations

from typing import Annotated

import typer

from admin.output import Shown, moment, text
from admin.session import Session
from admin.verbs import Wait, await_done, reads, refusal_of


@reads
def outcome(
    session: Session,
    intent: Annotated[str, typer.Argument(help="The id that the command printed.")],
    wait: Wait = 0.0,
) -> Shown:
    """Show the outcome of an intent of the last day: refused, accepted, done or expired."""
    if wait:
        await_done(session, intent, wait)
    found = session.get(f"outcomes/{intent}")
    if found["state"] in ("refused", "expired"):
        raise refusal_of(found)
    columns = {"id": text, "state": text, "kind": text, "at": moment}
    return Shown(found, [found], columns)
