"""What a person may do with a kept plan: approve, reject, cancel or undo it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from trimtab.cluster.plans.drains import begin_drains, release_drains
from trimtab.cluster.plans.keeping import is_drain, remember
from trimtab.cluster.plans.progress import skip_waiting, unasked
from trimtab.controls import Mode
from trimtab.intent_rules import Flaw, IntentRule
from trimtab.kept_plans.kept_plan import Effect, KeptPlan, Step, StepKind, StepState, undo_id
from trimtab.kept_plans.life import PlanEvent, PlanState, allows
from trimtab.nearby import nearby
from trimtab.reasons import Rule
from trimtab.settings import Settings
from trimtab.state.memory import Memory
from trimtab.state.round_state import ApprovedMove, AskedSplit
from trimtab.wire.intent import Intent, IntentKind

VERBS: Final[Mapping[IntentKind, PlanEvent]] = MappingProxyType(
    {
        IntentKind.APPROVE: PlanEvent.APPROVE,
        IntentKind.REJECT: PlanEvent.REJECT,
        IntentKind.CANCEL: PlanEvent.CANCEL,
        IntentKind.UNDO: PlanEvent.UNDO,
    }
)

DRAINS_LAST_MS: Final = 7 * 86_400_000
"""How long an approved plan that empties brokers may take. Shorter: one that waits for people to
restart brokers ends over a weekend; longer: a forgotten one goes on unexpectedly."""

_RULES: Final[Mapping[PlanState, IntentRule]] = MappingProxyType(
    {
        PlanState.APPROVED: IntentRule.ALREADY_APPROVED,
        PlanState.RUNNING: IntentRule.ALREADY_APPROVED,
        PlanState.DONE: IntentRule.ALREADY_APPROVED,
        PlanState.EXPIRED: IntentRule.PLAN_EXPIRED,
        PlanState.OVERTAKEN: IntentRule.PLAN_OVERTAKEN,
    }
)
"""Why a plan in a state is not approved; for other states and verbs PLAN_STATE."""


def find_plan(memory: Memory, name: str) -> KeptPlan | None:
    """The remembered plan with that id."""
    return next((plan for plan in memory.plans if plan.id == name), None)


def plan_flaws(memory: Memory, intent: Intent, defaults: Settings) -> Iterator[Flaw]:
    """What is wrong with a verb for a plan."""
    plan = find_plan(memory, intent.plan)
    if plan is None:
        near = nearby(intent.plan, [each.id for each in memory.plans])
        yield IntentRule.UNKNOWN_PLAN, f"plan: {intent.plan} is not known, or long past; {near}"
        return
    verb = VERBS[intent.kind]
    if not allows(plan.state, verb):
        rule = _RULES.get(plan.state) if verb is PlanEvent.APPROVE else None
        rule = rule or IntentRule.PLAN_STATE
        stands = f"plan: {plan.id} is {plan.state}{_by(plan)}, and nothing to {verb}"
        yield rule, stands + _instead(memory, plan)
    elif verb is PlanEvent.UNDO and not any(_has_moved(step) for step in plan.steps):
        yield IntentRule.PLAN_STATE, f"plan: {plan.id} has moved nothing"
    acting = verb in (PlanEvent.APPROVE, PlanEvent.UNDO)
    if acting and defaults.with_valid(memory.overrides).round.observe_only:
        problem = "round.observe_only: the job moves nothing; set it to false first"
        yield IntentRule.OBSERVING, problem


def apply_verb(memory: Memory, intent: Intent, settings: Settings, now_ms: int) -> Memory:
    """The memory after a verb without flaws."""
    plan = find_plan(memory, intent.plan)
    if plan is None:
        return memory
    until = now_ms + round(1000 * settings.plans.expiry)
    return _EFFECTS[intent.kind](memory, plan, intent.by, now_ms, until)


def _approve(memory: Memory, plan: KeptPlan, by: str, _: int, until: int) -> Memory:
    until += DRAINS_LAST_MS if is_drain(plan) else 0
    approved = plan.after(PlanEvent.APPROVE, by=by, until=max(plan.until, until))
    return begin_drains(_asking(_replaced(memory, approved), approved))


def _reject(memory: Memory, plan: KeptPlan, by: str, *_: int) -> Memory:
    return _replaced(memory, plan.after(PlanEvent.REJECT, by=by))


def _cancel(memory: Memory, plan: KeptPlan, by: str, *_: int) -> Memory:
    bundles = {step.bundle for step in plan.steps if step.state is StepState.WAITING}
    liveness = release_drains(plan, memory.liveness)
    memory = replace(memory, round=unasked(memory, bundles), liveness=liveness)
    ended = skip_waiting(plan, Rule.CANCELLED).after(PlanEvent.CANCEL, by=by)
    return _replaced(memory, ended)


def _undo(memory: Memory, plan: KeptPlan, by: str, now_ms: int, until: int) -> Memory:
    back = KeptPlan(
        id=undo_id(plan.id),
        cluster=plan.cluster,
        state=PlanState.APPROVED,
        mode=Mode.APPROVE,
        steps=tuple(_back(step) for step in reversed(plan.steps) if _has_moved(step)),
        effect=Effect(sum(map(_has_moved, plan.steps)), plan.effect.brokers, plan.effect.load),
        at=now_ms,
        until=until,
        origin=f"undo of {plan.id}",
        by=by,
    )
    memory = _replaced(memory, plan.after(PlanEvent.UNDO, by=by))
    return _asking(replace(memory, plans=remember(*memory.plans, back)), back)


_EFFECTS: Final[Mapping[IntentKind, Callable[[Memory, KeptPlan, str, int, int], Memory]]] = (
    MappingProxyType(
        {
            IntentKind.APPROVE: _approve,
            IntentKind.REJECT: _reject,
            IntentKind.CANCEL: _cancel,
            IntentKind.UNDO: _undo,
        }
    )
)


def _asking(memory: Memory, plan: KeptPlan) -> Memory:
    """The memory with rounds asked for the steps of a plan."""
    state, steps = memory.round, plan.steps
    moves = {
        step.bundle: ApprovedMove(step.source, step.destination)
        for step in steps
        if step.kind is StepKind.MOVE
    }
    splits = {
        step.bundle: AskedSplit(step.algorithm, step.positions)
        for step in steps
        if step.kind is StepKind.SPLIT
    }
    merges = {step.bundle: step.neighbour for step in steps if step.kind is StepKind.MERGE}
    asked = replace(
        state,
        approved=moves | state.approved,
        approved_merges=merges | state.approved_merges,
        asked=splits | state.asked,
    )
    return replace(memory, round=asked)


def _replaced(memory: Memory, plan: KeptPlan) -> Memory:
    plans = tuple(plan if each.id == plan.id else each for each in memory.plans)
    return replace(memory, plans=plans)


def _has_moved(step: Step) -> bool:
    granted = step.state in (StepState.BEGUN, StepState.DONE)
    return step.kind is StepKind.MOVE and (granted or step.rule == Rule.LATE)


def _back(step: Step) -> Step:
    return Step(StepKind.MOVE, step.bundle, step.destination, step.source, reason=step.reason)


def _instead(memory: Memory, plan: KeptPlan) -> str:
    waiting = [each for each in memory.plans if each.state is PlanState.PROPOSED]
    if plan.state is not PlanState.OVERTAKEN or not waiting:
        return ""
    return f"; {max(waiting, key=lambda each: each.at).id} is the newest"


def _by(plan: KeptPlan) -> str:
    return f" by {plan.by}" if plan.by else ""
