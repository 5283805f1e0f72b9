"""Plans that empty brokers: what they cost, and how they go on.

drain     all brokers at once; each step is done when its broker owns nothing
restart   one broker after the other: emptied, restarted by a person, and used again when its
          lease is back and it may get bundles; or when a person says so (undrain)
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Final

from trimtab.cluster.plans.drain_cost import count_handovers, count_owned
from trimtab.cluster.plans.effect import predict_seconds
from trimtab.cluster.plans.keeping import is_drain, remember
from trimtab.cluster.plans.progress import advance
from trimtab.controls import Mode
from trimtab.intent_rules import Flaw, IntentRule
from trimtab.kept_plans.kept_plan import (
    Effect,
    KeptPlan,
    Step,
    StepKind,
    StepState,
    drain_plan_id,
)
from trimtab.kept_plans.life import OPEN, UNDER_WAY, PlanState
from trimtab.reasons import Rule
from trimtab.settings import Settings
from trimtab.state.liveness import Liveness
from trimtab.state.memory import Memory
from trimtab.wire.intent import Intent, IntentKind
from trimtab.wire.ownership import Record

DRAIN_PLANS: Final = frozenset({IntentKind.DRAIN_PLAN, IntentKind.RESTART_PLAN})
_BEGUN: Final = (StepState.BEGUN, StepState.EMPTY)


def drain_plan_flaws(memory: Memory, intent: Intent, defaults: Settings) -> Iterator[Flaw]:
    """What is wrong with a plan that would empty brokers."""
    rule, named = IntentRule.INVALID_PLAN, intent.brokers
    if len({*named}) < len(named):
        yield rule, "brokers: one is named twice"
    taken = {s.source for plan in memory.plans if plan.state in OPEN for s in plan.steps}
    for broker in named:
        if broker in taken and _in_drain_plan(memory, broker):
            yield rule, f"brokers: {broker} is in another plan that is open; cancel that first"
    if defaults.with_valid(memory.overrides).round.observe_only:
        problem = "round.observe_only: the job moves nothing; set it to false first"
        yield IntentRule.OBSERVING, problem


def make_drain_plan(
    memory: Memory, intent: Intent, owned: Mapping[str, int], settings: Settings, now_ms: int
) -> Memory:
    """The memory with a plan that empties ``intent.brokers``; ``owned``: how many bundles each
    broker has that may get some, and each of those."""
    restart = intent.kind is IntentKind.RESTART_PLAN
    kind = StepKind.RESTART if restart else StepKind.DRAIN
    handovers = sum(count_handovers(owned, intent.brokers, restart=restart))
    plan = KeptPlan(
        id=drain_plan_id(intent.id),
        cluster=intent.cluster,
        state=PlanState.PROPOSED,
        mode=Mode.APPROVE,
        steps=tuple(Step(kind, source=broker) for broker in intent.brokers),
        effect=Effect(
            handovers,
            intent.brokers,
            seconds=predict_seconds(handovers, memory.round.ledger.hand_overs, settings),
        ),
        at=now_ms,
        until=now_ms + round(1000 * settings.plans.expiry),
        origin=intent.id,
        by=intent.by,
    )
    return replace(memory, plans=remember(*memory.plans, plan))


def begin_drains(memory: Memory) -> Memory:
    """The memory with the brokers draining whose turn it is."""
    plans = tuple(_begun(plan) if _runs(plan) else plan for plan in memory.plans)
    if plans == memory.plans:
        return memory
    begun = (step for plan in plans if _runs(plan) for step in plan.steps)
    liveness = memory.liveness
    for step in begun:
        if step.state is StepState.BEGUN:
            liveness = liveness.drained(step.source)
    return replace(memory, plans=plans, liveness=liveness)


def follow_drains(
    memory: Memory, records: Mapping[str, Record], settings: Settings, now_ms: int
) -> Memory:
    """The memory after a round that was shown all ``records``: brokers that are empty, and brokers
    that are back."""
    if not records or not any(map(_runs, memory.plans)):
        return memory
    owners, liveness = count_owned(records), memory.liveness

    def after(step: Step) -> Step:
        if step.state is StepState.EMPTY and _is_back(step, liveness, settings, now_ms):
            return replace(step, state=StepState.DONE)
        return _emptied(step, liveness, owners, now_ms) if step.state is StepState.BEGUN else step

    plans = tuple(advance(plan.with_steps(after)) if _runs(plan) else plan for plan in memory.plans)
    if plans == memory.plans:
        return memory
    memory = begin_drains(replace(memory, plans=plans, liveness=_used_again(memory, plans)))
    # The next broker's turn needs no regular round.
    return replace(memory, repair_ms=now_ms + 1)


def _emptied(step: Step, liveness: Liveness, owners: Collection[str], now_ms: int) -> Step:
    if step.source not in liveness.draining:
        return replace(step, state=StepState.SKIPPED, rule=Rule.CANCELLED)
    if step.source in owners:
        return step
    done = step.kind is StepKind.DRAIN
    return replace(step, state=StepState.DONE if done else StepState.EMPTY, began=now_ms)


def _used_again(memory: Memory, plans: tuple[KeptPlan, ...]) -> Liveness:
    """The liveness with the brokers in use that were restarted."""
    liveness = memory.liveness
    for plan, before in zip(plans, memory.plans, strict=True):
        for step, was in zip(plan.steps, before.steps, strict=True):
            if step.state is StepState.DONE and was.state is StepState.EMPTY:
                liveness = liveness.undrained(step.source)
    return liveness


def _runs(plan: KeptPlan) -> bool:
    return plan.state in UNDER_WAY and is_drain(plan)


def release_drains(plan: KeptPlan, liveness: Liveness) -> Liveness:
    """The liveness with the brokers in use again that a cancelled plan has begun to empty."""
    for step in plan.steps:
        if step.kind in (StepKind.DRAIN, StepKind.RESTART) and step.state in _BEGUN:
            liveness = liveness.undrained(step.source)
    return liveness


def _begun(plan: KeptPlan) -> KeptPlan:
    """The plan with the steps begun whose turn it is: all drains, or the next restart."""
    active = any(step.state in _BEGUN for step in plan.steps)
    steps = list[Step]()
    for step in plan.steps:
        if step.state is StepState.WAITING and (step.kind is StepKind.DRAIN or not active):
            step = replace(step, state=StepState.BEGUN)
            active = True
        steps.append(step)
    return advance(replace(plan, steps=tuple(steps)))


def _is_back(step: Step, liveness: Liveness, settings: Settings, now_ms: int) -> bool:
    """Whether the broker may get bundles again: it restarted after it was empty, or a person put
    it back into use."""
    broker = step.source
    if broker not in liveness.draining:
        return True
    losses = liveness.losses.get(broker)
    if broker in liveness.gone or losses is None or losses.last_ms < step.began:
        return False
    return liveness.held_back(settings.flapping).get(broker, now_ms) <= now_ms


def _in_drain_plan(memory: Memory, broker: str) -> bool:
    return any(
        is_drain(plan) and plan.state in OPEN and any(s.source == broker for s in plan.steps)
        for plan in memory.plans
    )
