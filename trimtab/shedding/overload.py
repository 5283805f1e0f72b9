"""Shed from every broker whose usage is at its limit (Pulsar OverloadShedder).

for each broker with usage >= overloaded_threshold that lists more than one bundle:
  need = throughput * (usage - overloaded_threshold + 0.05)
  take its largest until need is covered, at least one
"""

from __future__ import annotations

from collections.abc import Sequence

from trimtab.arrays import THROUGHPUT_IN
from trimtab.load import usage
from trimtab.plan import ShedWish
from trimtab.reasons import Reason
from trimtab.settings import Settings
from trimtab.shedding.busiest import MARGIN, take_until, traffic
from trimtab.view import View


def shed(view: View, history: None, settings: Settings) -> tuple[Sequence[ShedWish], None]:
    """Shed the largest bundles of every overloaded broker, even if the others carry as much."""
    limit = settings.round.overloaded_threshold
    loads = usage(view.brokers.resources, settings.weights)
    need = traffic(view.brokers, THROUGHPUT_IN) * (loads - limit + MARGIN)
    hot = (loads >= limit) & (view.brokers.listed > 1)
    return take_until(view, need, hot, Reason.OVERLOADED), history
