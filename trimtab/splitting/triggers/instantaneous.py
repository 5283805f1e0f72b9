"""Split bundles that stay over a limit (Pulsar DefaultNamespaceBundleSplitStrategyImpl).

drop the hits of bundles that no longer exist
for each movable bundle with at least two topics whose range can be split, in order of row:
  if, as last reported, topics > max_topics, sessions > max_sessions (unless that is 0 or less),
      messages/s > max_rate, or bytes/s > max_throughput: add a hit, otherwise drop all hits
  if it has more than `hits`, its namespace, with the splits planned so far, has fewer than
      max_bundles, neither it nor the bundle it came from is being split, and it is divisible:
    split it and drop its hits
    stop after max_per_round, unless that is 0; bundles not looked at keep their hits
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from trimtab.hits import HitCounts
from trimtab.model import BeingSplit, parse_bundle
from trimtab.names import rows_of
from trimtab.plan import SplitWish
from trimtab.reasons import Reason
from trimtab.settings import Settings, SplitSettings
from trimtab.splitting.triggers.limits import Places, find_judged, over_limits
from trimtab.view import Bundles, View

Divisible = Callable[[int], bool]
"""Whether a bundle row has a possible split point; asked for bundles that are about to be split."""


@dataclass(frozen=True, slots=True)
class SplitHistory:
    """Hits of each bundle, by name."""

    hits: HitCounts = field(default_factory=HitCounts)


def owner_decides(row: int) -> bool:  # noqa: ARG001
    """Always True: only the owner knows a bundle's topics, and may find no split point."""
    return True


def split(
    view: View, history: SplitHistory, settings: Settings, divisible: Divisible = owner_decides
) -> tuple[Sequence[SplitWish], SplitHistory]:
    """Split bundles that were over a limit in more than ``hits`` consecutive rounds."""
    limits, names, past = settings.split, view.bundles.names, history.hits.counts
    over = over_limits(view.bundles, view.bundles.stats, limits)
    counts = {row: past.get(names[row], 0) + 1 for row in over if _wide(names[row])}
    ready = {row: over[row] for row, count in counts.items() if count > limits.hits}
    granted = _granted(view, ready, limits, divisible)
    wishes = list(islice(granted, limits.max_per_round or None))
    capped = 0 < limits.max_per_round == len(wishes)
    last = wishes[-1].bundle if capped else len(names) - 1
    hits = _unlooked(view.bundles, past, last)
    hits.update({names[row]: count for row, count in counts.items() if row <= last})
    for wish in wishes:
        del hits[names[wish.bundle]]
    return wishes, SplitHistory(HitCounts(hits))


def _wide(bundle: str) -> bool:
    low, high = parse_bundle(bundle)[1]
    return high - low > 1


def _granted(
    view: View, ready: Mapping[int, Reason], limits: SplitSettings, divisible: Divisible
) -> Iterator[SplitWish]:
    places = Places(view.bundles, view.sizes, limits.max_bundles)
    busy, names = BeingSplit(view.splitting), view.bundles.names
    for row, reason in ready.items():
        if places.free(row) and not busy.involves(names[row]) and divisible(row):
            places.take(row)
            yield SplitWish(row, reason)


def _unlooked(bundles: Bundles, past: Mapping[str, int], last: int) -> dict[str, int]:
    """The hits of bundles that are not judged, or come after row ``last``."""
    if not past:
        return {}
    may = find_judged(bundles)
    rows = [row for row in rows_of(bundles.names, past) if row > last or not may[row]]
    names = [bundles.names[row] for row in rows]
    return {name: past[name] for name in names}
