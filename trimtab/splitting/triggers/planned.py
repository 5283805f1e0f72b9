"""Split bundles over a limit, as `long_term` does, and those that no plan can make room for.

giants = bundles that forced too wide a range a round ago (`trimtab.planner.giants`)
a giant is left whole, and the largest such giant is reported, if
  it cannot be split: it has one topic, or the smallest range
  or its owner was asked in the last day and has not split it
  or splits do not help: after two in a row one child had nearly all, so a single topic is busy
  or its namespace is full
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from trimtab.load_model.history import PlannerHistory, Weighed
from trimtab.model import BeingSplit, within
from trimtab.names import rows_by_name
from trimtab.plan import SplitWish
from trimtab.planner.giants import is_splittable
from trimtab.reasons import Reason, Rule
from trimtab.settings import Settings, SplitSettings
from trimtab.splitting.triggers.limits import Places, over_limits
from trimtab.view import View

_NEARLY_ALL: Final = 0.9
"""The part of its ancestor's load from which a child has nearly all. Lower: bundles that another
split would help stay whole; higher: a bundle with one busy topic is split again."""
_IN_A_ROW: Final = 2
"""Useless splits in a row after which a bundle stays whole: one may be due to where the middle is.
"""
_TWICE: Final = 1.5
"""Rounds after which a giant has been seen in two."""
_FORGOTTEN: Final = 3.0
"""Rounds without a search for giants after which the known ones are dropped."""
_DAY_MS: Final = 86_400_000
"""How long a split that no giant comes from is remembered."""
_TRAFFIC: Final = (Reason.TOO_MANY_MESSAGES, Reason.TOO_MUCH_TRAFFIC)
"""Limits for which a bundle left whole is not split: a split does not lessen one topic's traffic.
"""

Divided = Mapping[str, Weighed]


def split(
    view: View, history: PlannerHistory, settings: Settings
) -> tuple[Sequence[SplitWish], PlannerHistory]:
    """The splits in order of row; last the largest giant that is left whole.

    Giants are only found while the strategy is ``trimtab``.
    """
    giants = _giants(view, history, settings)
    divided = _remembered(history.divided, history.giants, view.now_ms)
    whole = {row for row, giant in giants.items() if _left_whole(view, row, giant, divided)}
    over = over_limits(view.bundles, view.bundles.long, settings.split)
    wanted = {row: why for row, why in over.items() if row not in whole or why not in _TRAFFIC}
    wanted = {row: Reason.GIANT for row in giants if row not in whole} | wanted
    wishes = _placed(view, wanted, settings.split)
    placed = {wish.bundle for wish in wishes}
    left = [row for row in giants if row not in placed]
    for row in left[:1]:
        rule = Rule.UNDIVIDABLE if row in whole else Rule.FULL_NAMESPACE
        wishes.append(SplitWish(row, Reason.GIANT, rule))
    if not settings.round.observe_only:
        names = view.bundles.names
        divided |= {names[row]: giant for row, giant in giants.items() if row in placed}
    return wishes, replace(history, divided=divided)


def _giants(view: View, history: PlannerHistory, settings: Settings) -> dict[int, Weighed]:
    """The giants that were seen in two rounds and may be changed, by row; the largest first."""
    interval_ms = 1000 * settings.round.interval
    if history.looked_ms < view.now_ms - _FORGOTTEN * interval_ms:
        return {}
    seen_ms = view.now_ms - _TWICE * interval_ms
    known = {name: giant for name, giant in history.giants.items() if giant.at_ms <= seen_ms}
    row_of = rows_by_name(view.bundles.names, known)
    busy = BeingSplit(view.splitting)
    return {
        row_of[name]: Weighed(giant.size, view.now_ms)
        for name, giant in sorted(known.items(), key=lambda each: (-each[1].size, each[0]))
        if name in row_of and view.bundles.movable[row_of[name]] and not busy.involves(name)
    }


def _remembered(past: Divided, giants: Divided, now_ms: int) -> dict[str, Weighed]:
    """The splits of the last day, and those that a giant comes from."""
    return {
        name: whole
        for name, whole in past.items()
        if whole.at_ms >= now_ms - _DAY_MS
        or any(name != giant and within(name, giant) for giant in giants)
    }


def _left_whole(view: View, row: int, giant: Weighed, divided: Divided) -> bool:
    name = view.bundles.names[row]
    if not is_splittable(view.bundles, row) or name in divided:
        return True
    ancestors = [past for whole, past in divided.items() if within(whole, name)]
    return sum(giant.size >= _NEARLY_ALL * past.size for past in ancestors) >= _IN_A_ROW


def _placed(view: View, wanted: Mapping[int, Reason], limits: SplitSettings) -> list[SplitWish]:
    """The splits that their namespaces have places for, in order of row."""
    places, wishes = Places(view.bundles, view.sizes, limits.max_bundles), []
    for row in sorted(wanted):
        if places.free(row):
            places.take(row)
            wishes.append(SplitWish(row, wanted[row]))
    return wishes
