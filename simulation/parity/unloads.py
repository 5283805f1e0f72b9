"""What a shedder may take in a turn of a case, and its answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from simulation.parity.cases import Json
from trimtab.plan import Shed
from trimtab.settings import Settings
from trimtab.view import View


def may_shed(turn: Json, settings: Settings, order: Iterable[str]) -> Callable[[str], bool]:
    grace_ms = settings.round.grace_period * 1000
    recent = {b for b, ago in turn.get("recentlyUnloaded", {}).items() if ago <= grace_ms}
    allowed = set(order) - recent
    return allowed.__contains__


def unload_of(view: View, sheds: Sequence[Shed]) -> dict[str, list[str]]:
    unload: dict[str, list[str]] = {}
    for shed in sheds:
        source = view.brokers.names[shed.source]
        unload.setdefault(source, []).append(view.bundles.names[shed.bundle])
    return dict(sorted(unload.items()))
