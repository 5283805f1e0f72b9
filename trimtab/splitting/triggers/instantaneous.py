"""Divide what stays over a limit (Pulsar DefaultNamespaceBundleSplitStrategyImpl).

forget the hits of bundles that are no longer there
for each movable bundle of two topics at least whose range can be divided, in order of row:
  if, as last reported, topics > max_topics, sessions > max_sessions (unless that is 0 or less),
      messages/s > max_rate, or bytes/s > max_throughput: it has one hit more, otherwise none
  if it has more than `hits`, its namespace, with what is planned already, has fewer than
      max_bundles, neither it nor the bundle it came from is being divided, and it is divisible:
    divide it and forget its hits
    stop after max_per_round, unless that is 0; bundles not looked at keep their hits
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from trimtab.hits import HitCounts
from trimtab.model import parse_bundle
from trimtab.names import rows_of
from trimtab.plan import SplitWish
from trimtab.reasons import Reason
from trimtab.settings import Settings, SplitSettings
from trimtab.splitting.triggers.limits import Busy, Places, find_judged, over_limits
from trimtab.view import View

Divisible = Callable[[int], bool]
"""Whether there is a place to divide a bundle row, asked of those about to be divided."""


@dataclass(frozen=True, slots=True)
class SplitHistory:
    """Hits of each bundle, by name."""

    hits: HitCounts = field(default_factory=HitCounts)


def owner_decides(row: int) -> bool:  # noqa: ARG001
    """The owner of a bundle knows its topics, and may still find no place to divide it."""
    return True


def split(
    view: View, history: SplitHistory, settings: Settings, divisible: Divisible = owner_decides
) -> tuple[Sequence[SplitWish], SplitHistory]:
    """Those that were over a limit in more than ``hits`` rounds on end."""
    limits, names, past = settings.split, view.bundles.names, history.hits.counts
    over = over_limits(view.bundles, view.bundles.stats, limits)
    counts = {row: past.get(names[row], 0) + 1 for row in over if _wide(names[row])}
    ready = {row: over[row] for row, count in counts.items() if count > limits.hits}
    granted = _granted(view, ready, limits, divisible)
    divides = list(islice(granted, limits.max_per_round or None))
    capped = 0 < limits.max_per_round == len(divides)
    last = divides[-1].bundle if capped else len(names) - 1
    hits = _unlooked(view, past, last)
    hits.update({names[row]: count for row, count in counts.items() if row <= last})
    for divide in divides:
        del hits[names[divide.bundle]]
    return divides, SplitHistory(HitCounts(hits))


def _wide(bundle: str) -> bool:
    low, high = parse_bundle(bundle)[1]
    return high - low > 1


def _granted(
    view: View, ready: Mapping[int, Reason], limits: SplitSettings, divisible: Divisible
) -> Iterator[SplitWish]:
    places = Places(view, limits)
    busy = Busy(view)
    for row, reason in ready.items():
        if places.free(row) and not busy.beside(row) and divisible(row):
            places.take(row)
            yield SplitWish(row, reason)


def _unlooked(view: View, past: Mapping[str, int], last: int) -> dict[str, int]:
    """The hits of bundles that are not judged, or stand after row ``last``."""
    if not past:
        return {}
    may = find_judged(view.bundles)
    rows = [row for row in rows_of(view.bundles.names, past) if row > last or not may[row]]
    names = [view.bundles.names[row] for row in rows]
    return {name: past[name] for name in names}
