"""Divide what is over a limit by its long-term averages, at once (Pulsar BundleSplitterTask).

for each movable bundle of two topics at least, in order:
  if topics > max_topics, sessions > max_sessions (unless that is 0 or less),
      long-term messages/s > max_rate, or long-term bytes/s > max_throughput:
    divide it if its namespace, with what is planned already, has fewer than max_bundles
"""

from __future__ import annotations

from collections.abc import Sequence

from trimtab.plan import SplitWish
from trimtab.settings import Settings
from trimtab.splitting.triggers.limits import Places, over_limits
from trimtab.view import View


def split(view: View, history: None, settings: Settings) -> tuple[Sequence[SplitWish], None]:
    """All that are over a limit, as far as their namespaces have places.

    Also one whose range is too small, as Pulsar's does: `children` refuses it.
    """
    over = over_limits(view.bundles, view.bundles.long, settings.split)
    places, divides = Places(view, settings.split), []
    for row, reason in over.items():
        if places.free(row):
            places.take(row)
            divides.append(SplitWish(row, reason))
    return divides, history
