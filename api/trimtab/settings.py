"""/trimtab/v1/clusters/{cluster}/settings: what a cluster's rounds decide by."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from api.context import InContext
from api.refusal import RefusedRequest
from api.trimtab.changes import Change, HowToChange
from control.settings import explain_settings
from trimtab.settings import Value
from trimtab.wire.intent import IntentKind

own_settings = APIRouter(prefix="/clusters/{cluster}/settings", tags=["settings"])


class NewValues(BaseModel, extra="forbid"):
    """Values by trimtab's or Pulsar's names, set all together or not at all."""

    settings: dict[str, bool | int | float | str] = Field(min_length=1)


@own_settings.get("")
def list_settings(cluster: str, context: InContext) -> list[dict[str, Any]]:
    """The settings in force, and where each comes from: default, file or intent."""
    last = context.plane.cluster(cluster)
    if last.started is None:
        reason = "trimtab.rounds no longer says what the job was started with"
        raise RefusedRequest(503, reason)
    found, _ = explain_settings(context.plane.memory(last).overrides, last.started)
    return [each._asdict() for each in found]


@own_settings.patch("")
def set_values(cluster: str, values: NewValues, how: HowToChange) -> Change:
    """Change settings from the next round on."""
    given: dict[str, Value] = dict(values.settings)
    return how.ask(IntentKind.SETTINGS, cluster, settings=given)


@own_settings.delete("")
def reset_values(
    cluster: str, how: HowToChange, name: Annotated[list[str] | None, Query()] = None
) -> Change:
    """Return settings, or all without a name, to what the job was started with."""
    return how.ask(IntentKind.RESET, cluster, names=tuple(name or ()))
