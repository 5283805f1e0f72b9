"""What a shedder takes, as (broker, number of the bundle from 1 on) in the order of its wishes."""

from __future__ import annotations

from typing import Any, Final

from tests.support.clusters import Bundle
from trimtab.settings import Settings
from trimtab.shedding import SHEDDERS
from trimtab.view import View

MIB: Final = 1048576

TEN: Final = [Bundle((0, 0, i * MIB, i * MIB)) for i in range(1, 11)]
"""i MiB/s in and as much out, 110 MiB/s together."""


def ten(*recent: int) -> list[Bundle]:
    """TEN, of which some may not move."""
    return [Bundle(b.short, movable=i not in recent) for i, b in enumerate(TEN, 1)]


def picked(
    strategy: str, view: View, history: Any = None, **settings: object
) -> list[tuple[str, int]]:
    """The wishes of one round."""
    sheds, _ = SHEDDERS[strategy](view, history, Settings.parse(settings))
    return [(view.brokers.names[s.source], _number(view.bundles.names[s.bundle])) for s in sheds]


def _number(bundle: str) -> int:
    return int(bundle.rsplit("_", 1)[1], 16)
