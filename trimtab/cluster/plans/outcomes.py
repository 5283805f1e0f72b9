"""The outcomes of intents that approve or undo a plan: they end when their plan does."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from trimtab.cluster.outcomes import OF_PLANS, Told, end_pending, outcome_of
from trimtab.cluster.plans.verbs import find_plan
from trimtab.kept_plans.kept_plan import KeptPlan, StepState
from trimtab.kept_plans.life import UNDER_WAY, PlanState
from trimtab.state.memory import Memory
from trimtab.state.pending import Pending
from trimtab.wire.intent_outcome import IntentOutcome, IntentState

_TOLD: Final = 20
"""Skipped steps that an outcome names: more say nothing new; the plan has them all."""


def end_with_plans(cluster: str, memory: Memory, now_ms: int) -> Told:
    """End the intents whose plan has ended."""
    ended: dict[str, IntentOutcome] = {}
    for name, pending in memory.pending.items():
        if pending.kind in OF_PLANS:
            plan = find_plan(memory, pending.subject)
            if plan is None or plan.state not in UNDER_WAY:
                state, after = _ending(pending, plan)
                ended[name] = outcome_of(cluster, name, after, state, now_ms)
    return end_pending(memory, ended)


def _ending(pending: Pending, plan: KeptPlan | None) -> tuple[IntentState, Pending]:
    """The final state of an intent, with the steps that were skipped."""
    if plan is None:
        why = f"{pending.subject} was forgotten for newer plans"
        return IntentState.EXPIRED, replace(pending, problems=(why,))
    skipped = [step for step in plan.steps if step.state is StepState.SKIPPED]
    problems = tuple(f"{step.subject}: {step.rule}" for step in skipped[:_TOLD])
    if plan.state is PlanState.EXPIRED:
        return IntentState.EXPIRED, replace(pending, problems=("no round began it in time",))
    if plan.state is PlanState.CANCELLED:
        by = f" by {plan.by}" if plan.by else ""
        return IntentState.EXPIRED, replace(pending, problems=(f"it was cancelled{by}",))
    if skipped and len(skipped) == len(plan.steps):
        return IntentState.REFUSED, replace(pending, rule=skipped[0].rule, problems=problems)
    return IntentState.DONE, replace(pending, problems=problems)
