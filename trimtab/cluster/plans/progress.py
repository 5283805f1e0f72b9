"""Follows approved plans: what rounds granted, what has landed, and what is late.

a step     begins when a round grants it, and is skipped if the round refuses it
           is done when its bundle's record shows it, and skipped if that takes too long
a plan     is done when each of its steps is done or skipped
           expires at its end, as far as it has not begun
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

from trimtab.cluster.outcomes import without
from trimtab.kept_plans.kept_plan import FINAL, KeptPlan, Step, StepKind, StepState
from trimtab.kept_plans.life import UNDER_WAY, PlanEvent, PlanState
from trimtab.ownership import State
from trimtab.plan import Plan
from trimtab.reasons import Rule
from trimtab.settings import Settings
from trimtab.state.memory import Memory
from trimtab.state.round_state import RoundState
from trimtab.wire.ownership import Record


def note_granted(memory: Memory, plan: Plan, settings: Settings, now_ms: int) -> Memory:
    """The memory after a round granted or refused changes of kept plans."""
    if not any(each.state in UNDER_WAY for each in memory.plans):
        return memory
    granted = {split.bundle: "" for split in plan.splits}
    granted |= {merge.bundle: "" for merge in plan.merges}
    granted |= {move.bundle: move.destination for move in plan.moves}
    refused = {refusal.bundle: refusal.rule for refusal in reversed(plan.refusals)}
    state = memory.round
    asked = {*state.approved, *state.approved_merges, *state.asked}
    late_ms = now_ms - round(1000 * patience_s(settings))

    def after(step: Step) -> Step:
        if step.bundle and step.state is StepState.BEGUN and step.began <= late_ms:
            return replace(step, state=StepState.SKIPPED, rule=Rule.LATE)
        if step.state is not StepState.WAITING or step.bundle in asked:
            return step
        if granted.get(step.bundle) == step.destination:
            return replace(step, state=StepState.BEGUN, began=now_ms)
        if step.bundle in granted:
            return replace(step, state=StepState.SKIPPED, rule=Rule.TWICE)
        if step.bundle in refused:
            return replace(step, state=StepState.SKIPPED, rule=refused[step.bundle])
        return step

    return _followed(memory, after)


def note_landed(memory: Memory, records: Mapping[str, Record], declined: Collection[str]) -> Memory:
    """The memory after bundles have new ``records``; ``declined`` are those whose owner found
    nothing to split."""

    def after(step: Step) -> Step:
        record = records.get(step.bundle)
        if step.state is not StepState.BEGUN or record is None:
            return step
        if step.bundle in declined:
            return replace(step, state=StepState.SKIPPED, rule=Rule.UNDIVIDABLE)
        if step.kind is StepKind.MOVE:
            landed = record.state is State.OWNED and record.owner == step.destination
        else:
            landed = record.state is State.DELETED
        return replace(step, state=StepState.DONE) if landed else step

    return _followed(memory, after)


def expire_plans(memory: Memory, now_ms: int) -> Memory:
    """The memory without what has not begun and is too old to."""
    if not any(_is_late(plan, now_ms) for plan in memory.plans):
        return memory
    given_up = {
        step.bundle
        for plan in memory.plans
        if _is_late(plan, now_ms)
        for step in plan.steps
        if step.state is StepState.WAITING
    }
    plans = tuple(_expired(plan) if _is_late(plan, now_ms) else plan for plan in memory.plans)
    return replace(memory, plans=plans, round=unasked(memory, given_up))


def unasked(memory: Memory, bundles: Collection[str]) -> RoundState:
    """The state of rounds without what plans ask of these bundles."""
    state = memory.round
    return replace(
        state,
        approved=without(state.approved, *bundles),
        approved_merges=without(state.approved_merges, *bundles),
        asked=without(state.asked, *bundles),
    )


def skip_waiting(plan: KeptPlan, rule: Rule) -> KeptPlan:
    """The plan with what has not begun skipped by a rule."""
    return plan.with_steps(
        lambda step: (
            replace(step, state=StepState.SKIPPED, rule=rule)
            if step.state is StepState.WAITING
            else step
        )
    )


def advance(plan: KeptPlan) -> KeptPlan:
    """The plan started, and finished, as its steps say."""
    states = {step.state for step in plan.steps}
    if plan.state is PlanState.APPROVED and states - {StepState.WAITING, StepState.SKIPPED}:
        plan = plan.after(PlanEvent.START)
    if plan.state in UNDER_WAY and states <= FINAL:
        plan = plan.after(PlanEvent.FINISH)
    return plan


def patience_s(settings: Settings) -> float:
    """Seconds after which what was asked of rounds is late."""
    return 2 * settings.round.interval + settings.round.move_deadline


def _followed(memory: Memory, after: Callable[[Step], Step]) -> Memory:
    plans = tuple(
        advance(plan.with_steps(after)) if plan.state in UNDER_WAY else plan
        for plan in memory.plans
    )
    return memory if plans == memory.plans else replace(memory, plans=plans)


def _is_late(plan: KeptPlan, now_ms: int) -> bool:
    if plan.until > now_ms:
        return False
    waits = any(step.state is StepState.WAITING for step in plan.steps)
    unbegun = plan.state in (PlanState.PROPOSED, PlanState.APPROVED)
    return unbegun or (plan.state is PlanState.RUNNING and waits)


def _expired(plan: KeptPlan) -> KeptPlan:
    if plan.state is PlanState.RUNNING:
        return advance(skip_waiting(plan, Rule.LATE))
    return plan.after(PlanEvent.EXPIRE)
