"""The bundles a shedder may take in a turn of a case, and its answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from simulation.parity.cases import Json
from trimtab.plan import ShedWish
from trimtab.settings import Settings
from trimtab.view import View


def may_shed(
    case: Json, turn: Json, settings: Settings, order: Iterable[str]
) -> Callable[[str], bool]:
    recent, _ = resting(case, turn, settings)
    allowed = set(order) - recent
    return allowed.__contains__


def resting(case: Json, turn: Json, settings: Settings) -> tuple[set[str], set[str]]:
    """Bundles that moved recently, and those whose grace period is over."""
    given: dict[str, int] = turn.get("recentlyUnloaded", {})
    grace_ms = settings.round.grace_period * 1000
    over = {bundle for bundle, ago in given.items() if ago > grace_ms}
    dropped = over if case.get("applyGrace", True) else set()
    return set(given) - dropped, dropped


def dropped_by_grace(case: Json, turn: Json, settings: Settings) -> Json:
    """``graceDropped``, which the recording has only if it is not empty."""
    _, dropped = resting(case, turn, settings)
    return {"graceDropped": sorted(dropped)} if dropped else {}


def unload_of(view: View, sheds: Sequence[ShedWish]) -> dict[str, list[str]]:
    unload: dict[str, list[str]] = {}
    for shed in sheds:
        source = view.brokers.names[shed.source]
        unload.setdefault(source, []).append(view.bundles.names[shed.bundle])
    return dict(sorted(unload.items()))
