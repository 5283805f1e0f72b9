"""A second strategy on the same stream, whose moves are only counted.

The strategy that acts is the active strategy, the other is the shadow. Each has its own world; the
two worlds are equal when the comparison begins:

after each round that asked the active strategy:
  bring the shadow's world up to date with the true one
  decide on the view of it, with the shadow's strategy and everything else equal
  count the moves and bounces of both, and the usage range that each found
  apply the shadow's moves to its world at once; the active strategy's do not happen there
What neither strategy decides happens in both worlds: load, losses and repairs, splits, drains, and
moves that are not trimtab's. While observing only, the active strategy moves nothing.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from trimtab.controls import Controls
from trimtab.plan import Move, Plan
from trimtab.reasons import IDLE, ORDERED, Rule
from trimtab.round.decide import decide
from trimtab.settings import NO_SHADOW, PlanSettings, Settings
from trimtab.shadow.overlay import NOTHING_LEARNT, learn_costs, overlay_view, standing
from trimtab.state.memory import Memory
from trimtab.state.shadow_state import Contest, Shadow, Tally
from trimtab.view import View
from trimtab.wire.rounds import ShadowRecord, ShadowSide

_ASKED: Final = IDLE | {None, Rule.FROZEN}
"""``Plan.skipped`` of a round that asked the strategy, or would have without a freeze caused by its
own plans."""


def compare_shadow(
    memory: Memory, view: View, plan: Plan, settings: Settings
) -> tuple[Memory, ShadowRecord | None]:
    """The memory after the shadow's round, and the round's record; None without a shadow.

    ``plan`` is the active strategy's for ``view``; ``memory`` has the state that it began with.
    """
    if settings.shadow.shedding == NO_SHADOW:
        return (memory if memory.shadow is None else replace(memory, shadow=None)), None
    before = _known(memory, view.now_ms, settings)
    if plan.skipped not in _ASKED:
        return replace(memory, shadow=before), _record(before, before, None, None)
    other_plan, shadow, problems = _run(_caught_up(before, memory, view), view, settings)
    own = () if settings.round.observe_only else _compared_moves(plan)
    moves = _compared_moves(other_plan)
    # A round is compared where both have a range.
    mine, other = _range(plan), _range(other_plan)
    both = mine is not None and other is not None
    after = replace(
        shadow,
        at_ms=view.now_ms,
        rounds=shadow.rounds + both,
        elsewhere={move.bundle: move.source for move in own}
        | shadow.elsewhere
        | {move.bundle: move.destination for move in moves},
        champion=shadow.champion.after(own, mine if both else None, view.now_ms),
        challenger=shadow.challenger.after(moves, other if both else None, view.now_ms),
    )
    memory = replace(memory, shadow=after, problems=[*memory.problems, *problems])
    return memory, _record(before, after, mine, other)


def _known(memory: Memory, now_ms: int, settings: Settings) -> Shadow:
    """The remembered comparison, or a new one if the strategies have changed."""
    contest = Contest(
        settings.round.shedding,
        settings.round.placement,
        settings.shadow.shedding,
        settings.shadow.placement,
    )
    if memory.shadow is not None and memory.shadow.contest == contest:
        return memory.shadow
    # As if the shadow's strategy took over now.
    return Shadow(contest, now_ms, now_ms, memory.round, NOTHING_LEARNT)


def _caught_up(shadow: Shadow, memory: Memory, view: View) -> Shadow:
    """The shadow's world after what happened in both since its last round."""
    liveness, true = memory.liveness, memory.round
    here = memory.appended.keys() - liveness.gone.keys() - liveness.draining
    return replace(
        shadow,
        round=replace(
            shadow.round, number=true.number, paused=False, halves=true.halves, asked=true.asked
        ),
        elsewhere=standing(shadow.elsewhere, view, here),
    )


def _run(shadow: Shadow, view: View, settings: Settings) -> tuple[Plan, Shadow, tuple[str, ...]]:
    """The shadow's plan and its memory after it, or the problem with its strategy."""
    try:
        return *_decided(shadow, view, settings), ()
    except Exception as error:
        # A failing shadow must not stop the round it is compared with.
        return Plan(), shadow, (f"shadow.shedding: {type(error).__name__}: {error}",)


def _decided(shadow: Shadow, view: View, settings: Settings) -> tuple[Plan, Shadow]:
    chosen = replace(
        settings.round,
        shedding=settings.shadow.shedding,
        placement=settings.shadow.placement,
        observe_only=False,
    )
    elapsed = max(view.now_ms - shadow.at_ms, 0) / 1000
    kept = 0.5 ** (elapsed / settings.planner.cost_half_life)
    costs = learn_costs(shadow.costs, view.brokers, kept)
    world = overlay_view(view, shadow.elsewhere, costs)
    # Pins bind it; it waits for no person, as it moves nothing.
    world = replace(world, controls=Controls(pins=view.controls.pins))
    # The same draws as the active strategy's: luck must make no difference between them.
    rng = shadow.round.draws(view.cluster)
    settings = replace(settings, round=chosen, plans=PlanSettings())
    plan, state = decide(world, shadow.round, settings, view.now_ms, rng)
    return plan, replace(shadow, round=state, costs=costs)


def _compared_moves(plan: Plan) -> tuple[Move, ...]:
    """The moves that strategies want: others follow the true world, but take budget and draws."""
    return tuple(move for move in plan.moves if move.reason not in ORDERED)


def _range(plan: Plan) -> float | None:
    return plan.summary.get("usage_range")


def _record(before: Shadow, after: Shadow, mine: float | None, other: float | None) -> ShadowRecord:
    def side(names: tuple[str, ...], was: Tally, now: Tally, found: float | None) -> ShadowSide:
        strategy, placement = names
        return ShadowSide(
            strategy=strategy,
            placement=placement,
            range=found,
            moves=now.moves - was.moves,
            bounces=now.bounces - was.bounces,
            mean_range=now.ranges / after.rounds if after.rounds else None,
            total_moves=now.moves,
            total_bounces=now.bounces,
        )

    contest = after.contest
    return ShadowRecord(
        since=after.since_ms,
        rounds=after.rounds,
        champion=side(contest[:2], before.champion, after.champion, mine),
        challenger=side(contest[2:], before.challenger, after.challenger, other),
    )
