"""A round's record for the sinks: its plan in names and figures, and what constrained it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from trimtab.arrays import Floats
from trimtab.cluster.plan_records import (
    record_division,
    record_held,
    record_merge,
    record_move,
    record_refusal,
    record_repair,
    record_settled,
    record_split,
)
from trimtab.doubt import Doubt
from trimtab.health.assessment import Assessment
from trimtab.load import usage
from trimtab.plan import Plan
from trimtab.reasons import Rule
from trimtab.round.idle import read_hits
from trimtab.settings import Settings
from trimtab.splitting.busy_topics import BusyTopic
from trimtab.state.memory import Memory
from trimtab.view import Brokers, View
from trimtab.wire.hints import Hints
from trimtab.wire.rounds import BusyTopicRecord, RoundRecord, ShadowRecord

_MOST: Final = 1000
"""Refusals, and problems, that a record lists; more would be of no use."""

_LONGEST: Final = 1000
"""Characters of a problem: an intent may contain any text."""


@dataclass(frozen=True, slots=True)
class Context:
    """The parts of a round's record besides its plan; ``now_ms`` is the batch timestamp."""

    now_ms: int
    settings: Settings
    memory: Memory
    """After the round."""
    situation: Assessment
    problems: tuple[str, ...] = ()
    state_hash: str = ""
    hints: Hints | None = None
    shadow: ShadowRecord | None = None
    whys: Mapping[str, str] = field(default_factory=dict)
    """Bundle to a sentence about what the plan does with it."""
    busy_topics: tuple[BusyTopic, ...] = ()


def record_round(
    plan: Plan, view: View, obstacles: Mapping[Rule, int], context: Context
) -> RoundRecord:
    """The round's record; ``obstacles`` counts the bundles each rule kept out of the view."""
    settings, memory, whys = context.settings, context.memory, context.whys
    state, liveness, brokers = memory.round, memory.liveness, view.brokers
    held_back = liveness.held_back(settings.flapping)
    return RoundRecord(
        cluster=view.cluster,
        round=state.number,
        at=context.now_ms,
        strategy=settings.round.shedding,
        placement=settings.round.placement,
        assignment=settings.round.assignment,
        observe_only=settings.round.observe_only,
        skipped=plan.skipped.value if plan.skipped else "",
        moves=tuple(record_move(move, whys.get(move.bundle, "")) for move in plan.moves),
        refusals=tuple(map(record_refusal, plan.refusals[:_MOST])),
        refused=dict(Counter(refusal.rule.value for refusal in plan.refusals)),
        obstacles={rule.value: count for rule, count in sorted(obstacles.items())},
        summary=plan.summary,
        usage=_usage(brokers, brokers.resources, context),
        smoothed_usage=_usage(brokers, brokers.smoothed_resources, context),
        problems=_shortened(context.problems),
        move_deadline_ms=round(settings.round.move_deadline * 1000),
        settings_version=memory.settings_version,
        state_hash=context.state_hash,
        splits=tuple(record_split(split, whys.get(split.bundle, "")) for split in plan.splits),
        division=record_division(settings.split) if plan.splits else None,
        merges=tuple(record_merge(merge, whys.get(merge.bundle, "")) for merge in plan.merges),
        repairs=tuple(record_repair(each, whys.get(each.bundle, "")) for each in plan.repairs),
        doubt=view.trouble.doubt,
        causes={c: d for c, d in context.situation.doubts.items() if d is not Doubt.STABLE},
        gone=tuple(sorted(liveness.gone)),
        draining=tuple(sorted(liveness.draining)),
        held_back=tuple(sorted(b for b, until in held_back.items() if until > context.now_ms)),
        unserved=context.situation.unserved,
        unserved_since=context.situation.unserved_since_ms,
        quarantined=context.situation.quarantined,
        hits=dict(read_hits(state, settings)),
        hints=context.hints,
        shadow=context.shadow,
        settled=tuple(map(record_settled, plan.review.settled[:_MOST])),
        closed=plan.review.closed,
        bias=state.ledger.bias,
        tripped=plan.review.tripped,
        frozen_until=state.breaker.until_ms,
        busy_topics=tuple(BusyTopicRecord(**each._asdict()) for each in context.busy_topics),
        undo=tuple(record_move(move, "") for move in plan.review.undo[:_MOST]),
        overrides=dict(memory.overrides),
        policies=view.policies,
        controls=view.controls,
        green=memory.migrations.green,
        held=record_held(plan.held) if plan.held else None,
    )


def _usage(brokers: Brokers, resources: Floats, context: Context) -> dict[str, float]:
    """The usage of each broker that is not lost."""
    loads = usage(resources, context.settings.weights).tolist()
    return {
        broker: load
        for broker, load in zip(brokers.names, loads, strict=True)
        # JSON cannot hold NaN or an infinity.
        if broker not in context.memory.liveness.gone and math.isfinite(load)
    }


def _shortened(problems: tuple[str, ...]) -> tuple[str, ...]:
    left_out = len(problems) - _MOST
    kept = tuple(problem[:_LONGEST] for problem in problems[:_MOST])
    return kept if left_out <= 0 else (*kept, f"and {left_out} more")
