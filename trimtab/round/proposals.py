"""What the strategies are shown, and what they propose.

show the available part of the view, without what is cooling down or in flight, and where bundles
  came from
the split trigger proposes; its bundles stay for the rest of the round
the merger proposes; its bundles stay too
the children of earlier splits wish for a place
the shedder proposes, unless shedding is off or the breaker has tripped
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from trimtab.merging import MERGERS
from trimtab.names import rows_by_name
from trimtab.plan import MOST_AT_ONCE, Merge, MergeWish, Refusal, ShedWish, Split, SplitWish
from trimtab.reasons import Reason
from trimtab.settings import Settings
from trimtab.shedding import STRATEGIES
from trimtab.splitting.triggers import TRIGGERS
from trimtab.state.round_state import RoundState
from trimtab.view import Bundles, View


class Proposals(NamedTuple):
    """What the strategies propose in one round."""

    view: View
    """What the shedder saw."""
    cooling: Collection[int]
    """Rows of the bundles that moved recently."""
    splits: tuple[Split, ...]
    merges: tuple[Merge, ...]
    refusals: tuple[Refusal, ...]
    """Splits that cannot be."""
    wishes: Sequence[ShedWish]
    """The moves to decide on, in order."""


def ask_strategies(
    view: View,
    state: RoundState,
    settings: Settings,
    instead: Sequence[ShedWish] | None,
    held: Collection[int],
) -> tuple[Proposals, RoundState]:
    """The proposals, and the state with the strategies' histories.

    ``view`` has the available brokers only. ``instead``: the wishes to take while no shedder may
    be asked; None: ask the shedder. ``held``: rows that strategies must leave alone.
    """
    row_of = rows_by_name(view.bundles.names, {*state.recent, *state.halves})
    cooling = frozenset(row_of[bundle] for bundle in state.recent if bundle in row_of)
    view = replace(view, left={bundle: broker for bundle, (broker, _) in state.left.items()})
    view = hold(view, [*view.in_flight.tolist(), *cooling, *held])
    divided, hindered, state = _ask_trigger(view, state, settings)
    rows = [wish.bundle for wish in divided]
    view = hold(view, rows, [view.bundles.names[row] for row in rows])
    merged = ask_merger(view, settings)
    view = hold(view, [row for wish in merged for row in (wish.bundle, wish.neighbour)])
    children, state = _ask_children(view.bundles, row_of, state, settings)
    wishes = instead
    if wishes is None:
        wishes, state = _ask_shedder(view, state, settings)
    splits, merges = _name(view, divided, merged)
    return Proposals(view, cooling, splits, merges, hindered, [*children, *wishes]), state


def hold(view: View, rows: list[int], splitting: Iterable[str] = ()) -> View:
    """The view with bundle ``rows`` marked as not movable, and these bundles as being split."""
    movable = view.bundles.movable.copy()
    movable[rows] = False
    return replace(
        view,
        bundles=replace(view.bundles, movable=movable),
        splitting=view.splitting.union(splitting),
    )


def _ask_trigger(
    view: View, state: RoundState, settings: Settings
) -> tuple[Sequence[SplitWish], tuple[Refusal, ...], RoundState]:
    """The splits to make, the refusals of those that cannot be made, and the state after both."""
    if not settings.split.enabled:
        return (), (), state
    name = settings.split.trigger
    wishes, history = TRIGGERS[name](view, state.histories.of(name), settings)
    names, owner = view.brokers.names, view.bundles.owner
    hindered = tuple(
        Refusal(view.bundles.names[wish.bundle], names[owner[wish.bundle]], wish.hindered)
        for wish in wishes
        if wish.hindered
    )
    splits = [wish for wish in wishes if not wish.hindered][:MOST_AT_ONCE]
    return splits, hindered, replace(state, histories=state.histories.having(name, history))


def ask_merger(view: View, settings: Settings) -> Sequence[MergeWish]:
    """The merges to make."""
    if not (settings.merge.enabled and settings.split.enabled):
        return ()
    return MERGERS[settings.merge.strategy](view, settings)[:MOST_AT_ONCE]


def _ask_children(
    bundles: Bundles, row_of: Mapping[str, int], state: RoundState, settings: Settings
) -> tuple[Sequence[ShedWish], RoundState]:
    """A wish for each child that its owner reports by now, unless the shedder is on and places them
    itself; the state waits for the other children."""
    waiting = {name: since for name, since in state.halves.items() if name not in row_of}
    rows = [row for name, row in row_of.items() if name in state.halves]
    wishes = [
        ShedWish(row, int(bundles.owner[row]), Reason.DIVIDED, or_stay=True)
        for row in rows
        if bundles.movable[row]
    ]
    placing = settings.round.enabled and STRATEGIES[settings.round.shedding].places_children
    return () if placing else wishes, replace(state, halves=waiting)


def _ask_shedder(
    view: View, state: RoundState, settings: Settings
) -> tuple[Sequence[ShedWish], RoundState]:
    name = settings.round.shedding
    strategy = STRATEGIES[name]
    history = state.histories.of(name, strategy.history)
    wishes, history = strategy.shed(view, history, settings)
    histories = state.histories.having(name, history, strategy.history)
    return wishes, replace(state, histories=histories)


def _name(
    view: View, splits: Sequence[SplitWish], merges: Sequence[MergeWish]
) -> tuple[tuple[Split, ...], tuple[Merge, ...]]:
    """The splits and merges by name, each with the epochs that must still hold."""
    bundles, brokers, owner = view.bundles.names, view.brokers.names, view.bundles.owner
    split = (
        Split(bundle, brokers[owner[wish.bundle]], wish.reason, view.epoch(bundle))
        for wish in splits
        for bundle in (bundles[wish.bundle],)
    )
    merge = (
        Merge(
            bundle=bundles[wish.bundle],
            neighbour=bundles[wish.neighbour],
            broker=brokers[owner[wish.bundle]],
            reason=wish.reason,
            epoch=view.epoch(bundles[wish.bundle]),
            neighbour_epoch=view.epoch(bundles[wish.neighbour]),
        )
        for wish in merges
    )
    return tuple(split), tuple(merge)
