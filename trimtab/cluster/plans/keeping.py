"""Keeps what a round holds back as a plan, and forgets the oldest plans.

While an approved plan is under way, and while one waits in the mode ``approve``, none is made. In
the mode ``propose`` a plan that wants something else takes the place of the one before.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final
from zlib import crc32

from trimtab.cluster.plans.effect import predict_effect
from trimtab.controls import Mode
from trimtab.explaining.scene import Scene
from trimtab.kept_plans.kept_plan import KeptPlan, Step, StepKind
from trimtab.kept_plans.life import OPEN, UNDER_WAY, PlanEvent, PlanState
from trimtab.model import namespace_of
from trimtab.plan import Held
from trimtab.round.holding import mode_of
from trimtab.state.memory import Memory

MOST_STEPS: Final = 1000
"""Steps of one plan. Fewer: a large skew takes many approvals; more: too much to read, and the
state that every batch writes grows."""
MOST_PLANS: Final = 20
"""Plans that are remembered, in any state; Redis keeps them for a day."""
MOST_STEPS_OF_ALL: Final = 5000


def keep_plan(memory: Memory, scene: Scene) -> Memory:
    """The memory with a plan of what the round of ``scene`` held back, if one is to be made."""
    made = make_plan(scene) if scene.plan.held else None
    if made is None:
        return memory
    plans = memory.plans
    waiting = [plan for plan in plans if plan.state is PlanState.PROPOSED and not is_drain(plan)]
    if any(plan.state in UNDER_WAY and not is_drain(plan) for plan in plans):
        return memory
    if any(plan.mode is Mode.APPROVE or plan.asks_the_same(made) for plan in waiting):
        return memory
    if any(_is_rejected(plan, made, scene.now_ms) for plan in plans):
        return memory
    after = [each.after(PlanEvent.OVERTAKE) if each in waiting else each for each in plans]
    return replace(memory, plans=remember(*after, made))


def make_plan(scene: Scene) -> KeptPlan | None:
    """A plan of what the round held back and a person may approve; None if there is nothing."""
    controls, settings = scene.view.controls, scene.settings
    modes = {each: mode_of(controls, settings, each) for each in _namespaces(scene.plan.held)}
    asking = {namespace for namespace, mode in modes.items() if mode.keeps_plans}
    if not asking:
        return None
    held = _approvable(scene.plan.held, asking)
    steps = tuple(_steps(held))
    text = repr((scene.now_ms, steps))
    return KeptPlan(
        id=f"{scene.number}-{crc32(text.encode()) & 0xFFFF:04x}",
        cluster=scene.view.cluster,
        state=PlanState.PROPOSED,
        mode=Mode.APPROVE if Mode.APPROVE in modes.values() else Mode.PROPOSE,
        steps=steps[:MOST_STEPS],
        effect=predict_effect(scene, held),
        at=scene.now_ms,
        until=scene.now_ms + round(1000 * scene.settings.plans.expiry),
        origin=f"round {scene.number}",
        cut=max(len(steps) - MOST_STEPS, 0),
    )


def remember(*plans: KeptPlan) -> tuple[KeptPlan, ...]:
    """The plans to be remembered: all open ones, and the newest of the others."""
    kept = [*plans]
    for plan in plans:
        steps = sum(len(each.steps) for each in kept)
        if len(kept) <= MOST_PLANS and steps <= MOST_STEPS_OF_ALL:
            break
        if plan.state not in OPEN:
            kept.remove(plan)
    return tuple(kept)


def _is_rejected(plan: KeptPlan, made: KeptPlan, now_ms: int) -> bool:
    rejected = plan.state is PlanState.REJECTED and plan.until > now_ms
    return rejected and plan.asks_the_same(made)


def is_drain(plan: KeptPlan) -> bool:
    """Whether the plan empties brokers; these wait and run beside the rounds' own."""
    return any(step.kind in (StepKind.DRAIN, StepKind.RESTART) for step in plan.steps)


def _namespaces(held: Held) -> set[str]:
    return {namespace_of(change.bundle) for change in held.changes}


def _approvable(held: Held, namespaces: set[str]) -> Held:
    """What is held of these namespaces, as much as a plan may have."""
    return Held(
        tuple(each for each in held.moves if namespace_of(each.bundle) in namespaces),
        tuple(each for each in held.splits if namespace_of(each.bundle) in namespaces),
        tuple(each for each in held.merges if namespace_of(each.bundle) in namespaces),
    )


def _steps(held: Held) -> Iterator[Step]:
    for split in held.splits:
        yield Step(
            StepKind.SPLIT,
            split.bundle,
            split.broker,
            reason=split.reason,
            algorithm=split.algorithm,
            positions=split.positions,
        )
    for merge in held.merges:
        yield Step(
            StepKind.MERGE,
            merge.bundle,
            merge.broker,
            neighbour=merge.neighbour,
            reason=merge.reason,
        )
    for move in held.moves:
        yield Step(StepKind.MOVE, move.bundle, move.source, move.destination, reason=move.reason)
