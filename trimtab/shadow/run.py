"""A second strategy on the same stream, whose moves are only counted.

The strategy in charge is the champion, the other its challenger. They live in two worlds that are
one when the comparison begins:

after each round in which the champion's strategy was asked:
  bring the challenger's world up to date with the true one
  decide on the view of it, with the challenger's strategy and everything else alike
  count moves and bounces of both, and the range that each found
  the challenger's moves land in its world at once; the champion's do not happen there
What neither strategy decides happens in both worlds: load, losses and repairs, splits, drains, and
moves that are not trimtab's. While observing only, the champion moves nothing.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from trimtab.plan import Move, Plan
from trimtab.reasons import Reason, Rule
from trimtab.round.decide import decide
from trimtab.settings import NO_SHADOW, Settings
from trimtab.shadow.overlay import NOTHING_LEARNT, learn_costs, overlay_view, standing
from trimtab.state.memory import Memory
from trimtab.state.shadow_state import Contest, Shadow, Tally
from trimtab.view import View
from trimtab.wire.rows import ShadowRecord, ShadowSide

_ASKED: Final = (None, Rule.BALANCED, Rule.FROZEN)
"""``Plan.skipped`` of a round in which the strategy was asked, or would have been but for what came
of its own plans."""


def compare_shadow(
    memory: Memory, view: View, plan: Plan, settings: Settings
) -> tuple[Memory, ShadowRecord | None]:
    """The memory after the challenger's round, and what is told of it; None without a challenger.

    ``plan`` is what the champion made of ``view``; ``memory`` has the state that it began with.
    """
    if settings.shadow.shedding == NO_SHADOW:
        return (memory if memory.shadow is None else replace(memory, shadow=None)), None
    before = _known(memory, view, settings)
    if plan.skipped not in _ASKED:
        return replace(memory, shadow=before), _told(before, before, None, None)
    theirs, shadow, problems = _tried(_caught_up(before, memory, view), view, settings)
    own = () if settings.round.observe_only else _compared_moves(plan)
    moves = _compared_moves(theirs)
    # A round is compared where both have a range.
    mine, other = _range(plan), _range(theirs)
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
    return memory, _told(before, after, mine, other)


def _known(memory: Memory, view: View, settings: Settings) -> Shadow:
    """What is remembered; a comparison of other strategies is none."""
    contest = Contest(
        settings.round.shedding,
        settings.round.placement,
        settings.shadow.shedding,
        settings.shadow.placement,
    )
    if memory.shadow is not None and memory.shadow.contest == contest:
        return memory.shadow
    # As if the challenger took over now.
    return Shadow(contest, view.now_ms, view.now_ms, memory.round, NOTHING_LEARNT)


def _caught_up(shadow: Shadow, memory: Memory, view: View) -> Shadow:
    """The challenger's world after what happened in both since its last round."""
    liveness, true = memory.liveness, memory.round
    here = memory.appended.keys() - liveness.gone.keys() - liveness.draining
    return replace(
        shadow,
        round=replace(shadow.round, number=true.number, paused=False, halves=true.halves),
        elsewhere=standing(shadow.elsewhere, view, here),
    )


def _tried(shadow: Shadow, view: View, settings: Settings) -> tuple[Plan, Shadow, tuple[str, ...]]:
    """The challenger's plan and what it remembers then, or what is wrong with it."""
    try:
        return *_decided(shadow, view, settings), ()
    except Exception as error:
        # Whatever a strategy on trial does, the round it is compared with must stand.
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
    # As the champion draws, so that luck is no difference between them.
    rng = shadow.round.draws(view.cluster)
    plan, state = decide(world, shadow.round, replace(settings, round=chosen), view.now_ms, rng)
    return plan, replace(shadow, round=state, costs=costs)


def _compared_moves(plan: Plan) -> tuple[Move, ...]:
    """Without drains, which happen as they truly do: to plan them takes budget, draws and rest."""
    return tuple(move for move in plan.moves if move.reason is not Reason.DRAINED)


def _range(plan: Plan) -> float | None:
    return plan.summary.get("usage_range")


def _told(before: Shadow, after: Shadow, mine: float | None, other: float | None) -> ShadowRecord:
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
