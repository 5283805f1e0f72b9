"""Keep brokers that have room for more topics, and those with fewest bundles of the namespace."""

from __future__ import annotations

from trimtab.arrays import Bools
from trimtab.filters.request import Request
from trimtab.settings import Settings
from trimtab.view import spreads_always


def topic_cap(request: Request, candidates: Bools, settings: Settings) -> Bools:
    """Keep brokers within the topic cap, arrivals too (Pulsar filterBrokersWithLargeTopicCount)."""
    if request.projection.most_topics <= settings.placement.max_topics:
        return candidates
    topics = request.view.brokers.topics + request.projection.topics
    return candidates & (topics <= settings.placement.max_topics)


def topic_room(request: Request, candidates: Bools, settings: Settings) -> Bools:
    """Keep brokers below the topic cap (the extensible manager's BrokerMaxTopicCountFilter)."""
    return candidates & (request.view.brokers.topics < settings.placement.max_topics)


def evenness(request: Request, candidates: Bools, settings: Settings) -> Bools:
    """Keep brokers with the fewest bundles of the namespace (Pulsar removeMostServicingBrokers)."""
    if not (settings.placement.distribute_evenly or spreads_always(request.namespace)):
        return candidates
    ranges = request.projection.ranges(request.row)
    fewest: Bools = candidates & (ranges == 0)
    if not fewest.any() and candidates.any():
        fewest = candidates & (ranges == ranges[candidates].min())
    return fewest
