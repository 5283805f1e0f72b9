"""Topics that are too large by themselves: no split of their bundle helps, only more partitions.

busy = a bundle of one topic whose long-term bytes/s, in and out, reach topic_throughput, or that is
         over max_rate or max_throughput
       or one that the round left whole as undividable
A report counts a bundle's topics and does not name them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

import numpy as np

from trimtab.arrays import RATE_IN, RATE_OUT, THROUGHPUT_IN, THROUGHPUT_OUT, TOPICS
from trimtab.model import namespace_of
from trimtab.names import rows_of
from trimtab.plan import Refusal
from trimtab.reasons import Rule
from trimtab.settings import SplitSettings
from trimtab.view import View, is_monitoring

_MOST: Final = 20
"""Listed of a cluster: more would hide other problems."""


class BusyTopic(NamedTuple):
    """A bundle that one topic keeps busy, and its long-term traffic, in and out together."""

    bundle: str
    broker: str
    topics: int
    rate: float
    """Messages/s."""
    throughput: float
    """Bytes/s."""

    @property
    def where(self) -> str:
        """How to find the topic."""
        namespace = namespace_of(self.bundle)
        span = self.bundle.removeprefix(f"{namespace}/")
        return f"pulsar-admin topics list {namespace} --bundle {span}"


def find_busy_topics(
    view: View, refusals: Iterable[Refusal], limits: SplitSettings
) -> tuple[BusyTopic, ...]:
    """The busiest topics by bytes/s, the busiest first; equal ones by name."""
    bundles, traffic = view.bundles, view.bundles.long
    rate = traffic[RATE_IN] + traffic[RATE_OUT]
    throughput = traffic[THROUGHPUT_IN] + traffic[THROUGHPUT_OUT]
    over = (rate > limits.max_rate) | (throughput > limits.max_throughput)
    if limits.topic_throughput > 0:
        over |= throughput >= limits.topic_throughput
    busy = (bundles.counts[TOPICS] == 1) & over
    whole = {refusal.bundle for refusal in refusals if refusal.rule is Rule.UNDIVIDABLE}
    busy[rows_of(bundles.names, whole)] = True
    rows = np.flatnonzero(busy)
    found = [
        BusyTopic(
            bundle=bundles.names[row],
            broker=view.brokers.names[int(bundles.owner[row])],
            topics=int(bundles.counts[TOPICS, row]),
            rate=float(rate[row]),
            throughput=float(throughput[row]),
        )
        for row in rows[np.argsort(-throughput[rows], kind="stable")][: 2 * _MOST].tolist()
        if not is_monitoring(bundles.names[row])
    ]
    return tuple(sorted(found, key=lambda each: (-each.throughput, each.bundle))[:_MOST])
