"""/trimtab/v1/clusters/{cluster}/plans: plans that wait for a person, and their verbs."""

from __future__ import annotations

from typing import Any

import msgspec
from fastapi import APIRouter
from pydantic import BaseModel, Field

from api.context import InContext
from api.refusal import RefusedRequest
from api.trimtab.changes import Change, HowToChange
from trimtab.cluster.intents.size import MOST
from trimtab.kept_plans.kept_plan import KeptPlan
from trimtab.kept_plans.life import VERBS, allows
from trimtab.nearby import nearby
from trimtab.wire.intent import IntentKind

own_plans = APIRouter(prefix="/clusters/{cluster}/plans", tags=["plans"])


class NewPlan(BaseModel, extra="forbid"):
    """Which brokers to empty."""

    brokers: list[str] = Field(min_length=1, max_length=MOST["brokers"])
    restart: bool = Field(
        False, description="One after the other, each used again once it was restarted."
    )


@own_plans.get("")
def list_plans(cluster: str, context: InContext) -> list[dict[str, Any]]:
    """The plans of the last day, the newest first, without their steps."""
    found = context.plane.plans.list(cluster)
    if not found:
        context.plane.cluster(cluster)
    return [_told(plan, steps=False) for plan in found]


@own_plans.post("")
def make_plan(cluster: str, plan: NewPlan, how: HowToChange) -> Change:
    """Make a plan that empties brokers, with its cost; it runs once it is approved.

    The answer has the id of an intent; the plan is the one whose ``origin`` is that id."""
    kind = IntentKind.RESTART_PLAN if plan.restart else IntentKind.DRAIN_PLAN
    return how.ask(kind, cluster, brokers=tuple(plan.brokers))


@own_plans.get("/{plan}")
def get_plan(cluster: str, plan: str, context: InContext) -> dict[str, Any]:
    """A plan with its steps, what it is predicted to do, and how far it has come."""
    found = context.plane.plans.read(cluster, plan)
    if found is None:
        context.plane.cluster(cluster)
        near = nearby(plan, [each.id for each in context.plane.plans.list(cluster)])
        raise RefusedRequest(404, f"{plan}: no plan of the last day; {near}", "unknown-plan")
    return _told(found, steps=True)


@own_plans.post("/{plan}/approve")
def approve(cluster: str, plan: str, how: HowToChange) -> Change:
    """Carry out a plan; each of its moves is checked again, and skipped if it no longer fits."""
    return how.ask(IntentKind.APPROVE, cluster, plan=plan)


@own_plans.post("/{plan}/reject")
def reject(cluster: str, plan: str, how: HowToChange) -> Change:
    """Do not carry out a plan; the same is not proposed again before it would have expired."""
    return how.ask(IntentKind.REJECT, cluster, plan=plan)


@own_plans.post("/{plan}/cancel")
def cancel(cluster: str, plan: str, how: HowToChange) -> Change:
    """Cancel the steps of an approved plan that have not begun."""
    return how.ask(IntentKind.CANCEL, cluster, plan=plan)


@own_plans.post("/{plan}/undo")
def undo(cluster: str, plan: str, how: HowToChange) -> Change:
    """Make a plan that moves back what this plan has moved, if it is still there."""
    return how.ask(IntentKind.UNDO, cluster, plan=plan)


def _told(plan: KeptPlan, *, steps: bool) -> dict[str, Any]:
    told: dict[str, Any] = msgspec.to_builtins(plan)
    told["verbs"] = sorted(verb for verb in VERBS if allows(plan.state, verb))
    return told if steps else {**told, "steps": len(plan.steps)}
