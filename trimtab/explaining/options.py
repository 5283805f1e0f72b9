"""Lists where a bundle could go: brokers by their usage with it, and what forbids them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final

import numpy as np
from numpy.typing import NDArray

from trimtab.arrays import Floats, Ints
from trimtab.explaining.prediction import Prediction
from trimtab.explaining.scene import Scene
from trimtab.explaining.words import short
from trimtab.filters import CAPS, FILTERS, Filter, anti_affinity, find_permitted
from trimtab.filters.request import Request
from trimtab.filters.room import evenness, topic_cap
from trimtab.filters.software import latest_version, load_manager_class
from trimtab.model import namespace_of
from trimtab.wire.explanation import Option

SHOWN: Final = 5
"""Number of options besides the bundle's owner and the chosen broker."""
_OPEN: Final = 3
"""How many of them are not forbidden, if there are that many."""


class Bar(StrEnum):
    """Why a bundle must not, or should not, go to a broker."""

    HAS_IT = "has-it"
    GONE = "gone"
    DRAINING = "draining"
    HELD_BACK = "held-back"
    ISOLATED = "isolated"
    TOPICS = "too-many-topics"
    ANTI_AFFINITY = "anti-affinity"
    EVENNESS = "has-more-of-namespace"
    LOAD_MANAGER = "other-load-manager"
    VERSION = "older-version"
    OVERLOADED = "overloaded"
    ABOVE_PEAK = "above-peak"
    """With the bundle, the broker would use more than any broker does now."""


Barred = NDArray[np.int8]
_NAMED: Final = ("", *Bar)
_NUMBER: Final = {bar: number for number, bar in enumerate(Bar, 1)}
_BARS: Final[Mapping[Filter, Bar]] = MappingProxyType(
    {
        topic_cap: Bar.TOPICS,
        anti_affinity: Bar.ANTI_AFFINITY,
        evenness: Bar.EVENNESS,
        load_manager_class: Bar.LOAD_MANAGER,
        latest_version: Bar.VERSION,
    }
)


def options(
    scene: Scene, prediction: Prediction, bundle: str, owner: str | None, chosen: str | None
) -> tuple[Option, ...]:
    """The best options, the owner and the chosen one; empty if nothing can be computed."""
    if not scene.computable or not scene.view.brokers.names:
        return ()
    at, goes_to = scene.broker_rows.get(owner or ""), scene.broker_rows.get(chosen or "")
    used = prediction.before + prediction.added(scene.bundle_row(bundle))
    if at is not None:
        used[at] = prediction.before[at]
    request = scene.projection.request_for(namespace_of(bundle), at)
    peak = float(prediction.before[scene.seen_brokers].max(initial=0.0))
    barred = _barred(scene, request, used, peak)
    if goes_to is not None:
        # Earlier moves of the plan may have made room.
        barred[goes_to] = 0
    names = scene.view.brokers.names
    return tuple(
        Option(
            broker=names[row],
            usage=short(used[row]),
            bar=_NAMED[barred[row]],
            chosen=row == goes_to,
        )
        for row in _best(used, barred, [each for each in (goes_to, at) if each is not None])
    )


def _best(used: Floats, barred: Barred, wanted: list[int]) -> list[int]:
    """Rows, least used first: the wanted ones, some that are open, then the best of all."""
    free = [row for row in _least(used, np.flatnonzero(barred == 0)) if row not in wanted]
    best = [row for row in _least(used, np.arange(len(used))) if row not in wanted]
    found = dict.fromkeys([*free[:_OPEN], *best])
    return sorted([*wanted, *list(found)[:SHOWN]], key=lambda row: (used[row], row))


def _least(used: Floats, rows: Ints) -> list[int]:
    """The least used of ``rows``, more than are shown."""
    most = 2 * SHOWN
    if len(rows) > most:
        rows = rows[np.argpartition(used[rows], most)[:most]]
    least: list[int] = rows[np.lexsort((rows, used[rows]))].tolist()
    return least


def _barred(scene: Scene, request: Request, used: Floats, peak: float) -> Barred:
    """(n,) for each broker the index in `_NAMED` of the bar against it; 0 for none."""
    barred = np.zeros(len(used), np.int8)
    left = find_permitted(request)
    barred[scene.shown.brokers.available & ~left] = _NUMBER[Bar.ISOLATED]
    if request.source is not None:
        left[request.source] = False
    for narrow in CAPS if scene.directed else FILTERS:
        fewer = narrow(request, left, scene.settings)
        # A filter that would leave no broker is ignored.
        if fewer is not left and fewer.any():
            barred[left & ~fewer] = _NUMBER[_BARS[narrow]]
            left = fewer
    light = scene.light
    if (left & light).any():
        barred[left & ~light] = _NUMBER[Bar.OVERLOADED]
    if scene.directed:
        barred[left & (used > peak)] = _NUMBER[Bar.ABOVE_PEAK]
    if request.source is not None:
        barred[request.source] = _NUMBER[Bar.HAS_IT]
    for row, bar in _away(scene):
        barred[row] = _NUMBER[bar]
    return barred


def _away(scene: Scene) -> Iterator[tuple[int, Bar]]:
    liveness, rows = scene.memory.liveness, scene.broker_rows
    held_back = liveness.held_back(scene.settings.flapping)
    apart = (
        ([b for b, until in held_back.items() if until > scene.now_ms], Bar.HELD_BACK),
        (liveness.draining, Bar.DRAINING),
        (liveness.gone, Bar.GONE),
    )
    for brokers, bar in apart:
        yield from ((rows[broker], bar) for broker in brokers if broker in rows)
