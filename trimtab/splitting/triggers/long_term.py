"""Split bundles over a limit by their long-term averages, at once (Pulsar BundleSplitterTask).

for each movable bundle with at least two topics, in order:
  if topics > max_topics, sessions > max_sessions (unless that is 0 or less),
      long-term messages/s > max_rate, or long-term bytes/s > max_throughput:
    split it if its namespace, with the splits planned so far, has fewer than max_bundles
"""

from __future__ import annotations

from collections.abc import Sequence

from trimtab.plan import SplitWish
from trimtab.settings import Settings
from trimtab.splitting.triggers.limits import Places, over_limits
from trimtab.view import View


def split(view: View, history: None, settings: Settings) -> tuple[Sequence[SplitWish], None]:
    """Split all bundles over a limit, as far as their namespaces have places.

    As in Pulsar, also one whose range is too small: `children` refuses it.
    """
    over = over_limits(view.bundles, view.bundles.long, settings.split)
    places = Places(view.bundles, view.sizes, settings.split.max_bundles)
    wishes = []
    for row, reason in over.items():
        if places.free(row):
            places.take(row)
            wishes.append(SplitWish(row, reason))
    return wishes, history
