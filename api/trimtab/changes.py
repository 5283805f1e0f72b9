"""How trimtab's own paths change something: one intent, checked, sent, and its outcome awaited."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Final

from fastapi import Depends, Query
from pydantic import BaseModel, Field

from api.context import Context, InContext
from control.wording import describe
from trimtab.wire.intent import IntentKind

MOST_WAIT_S: Final = 60.0
"""Longer waits ask again: proxies end requests that take minutes."""
MOST_LISTED: Final = 1_000
"""Rows of a page: more would keep a request, and Redis, busy."""


class Change(BaseModel):
    """What a request to change something came to."""

    id: str = Field(description="The intent's; its outcome is kept under it. Empty of a dry run.")
    cluster: str
    kind: str
    what: str = Field(description="What happens, in words.")
    state: str = Field(description="checked (a dry run), sent, or the outcome's state.")
    notes: list[str] = Field(description="What is worth knowing before it is done.")


@dataclass(frozen=True, slots=True)
class Changing:
    """How a request wants its change: shown only, or carried out."""

    context: Context
    dry_run: bool
    wait_s: float
    checked: bool

    def ask(self, kind: IntentKind, cluster: str, /, **members: Any) -> Change:
        """Check the intent and, unless this is a dry run, send it. Raises Objections if the job
        would refuse it and RefusedRequest if it does."""
        context = self.context
        intent = context.new_intent(kind, cluster, **members)
        notes = context.plane.check(intent) if self.checked else []
        state = "checked"
        if not self.dry_run:
            context.send(intent)
            state = context.await_done(intent, self.wait_s) if self.wait_s else "sent"
        return Change(
            id="" if self.dry_run else intent.id,
            cluster=cluster,
            kind=kind.value,
            what=describe(intent),
            state=state,
            notes=notes,
        )


def _changing(
    context: InContext,
    dry_run: Annotated[
        bool, Query(alias="dryRun", description="Check and describe it; send nothing.")
    ] = False,
    wait: Annotated[
        float, Query(ge=0, le=MOST_WAIT_S, description="Seconds to wait until it is done.")
    ] = 0.0,
    unchecked: Annotated[
        bool, Query(description="Send it without a check; the job checks it anyway.")
    ] = False,
) -> Changing:
    return Changing(context, dry_run, min(wait, context.patience_s), not unchecked)


HowToChange = Annotated[Changing, Depends(_changing)]
"""Annotates a path's parameter: how its request wants the change."""
