"""Which brokers a bundle may go to, in the order in which Pulsar's modular manager asks.

`reachable` is the set no preference may leave; each of FILTERS then narrows it, and one that would
leave nobody is not heeded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from trimtab.placement.request import Request
from trimtab.settings import Settings
from trimtab.view import Bools

Filter = Callable[[Request, Bools, Settings], Bools]
"""(request, candidates, settings) to the candidates that are left; all of shape (n,)."""


def reachable(request: Request) -> Bools:
    """Brokers that may receive at all: available, and not the one the bundle leaves."""
    allowed = request.view.brokers.available.copy()
    if request.source is not None:
        allowed[request.source] = False
    return allowed


def topic_cap(request: Request, candidates: Bools, settings: Settings) -> Bools:
    """Brokers within the topic cap, counting arrivals (Pulsar filterBrokersWithLargeTopicCount)."""
    topics = request.view.brokers.topics + request.projection.topics
    return candidates & (topics <= settings.placement.max_topics)


def evenness(request: Request, candidates: Bools, settings: Settings) -> Bools:
    """Brokers with the fewest bundles of the namespace (Pulsar removeMostServicingBrokers)."""
    if not (settings.placement.distribute_evenly or request.bundle.startswith("pulsar/system/")):
        return candidates
    ranges = request.projection.ranges(request.namespace)
    fewest: Bools = candidates & (ranges == ranges[candidates].min())
    return fewest


CAPS: Final[tuple[Filter, ...]] = (topic_cap,)
"""What also binds a destination that a shedder chose itself."""

FILTERS: Final[tuple[Filter, ...]] = (*CAPS, evenness)


def narrowed(
    request: Request, candidates: Bools, filters: tuple[Filter, ...], settings: Settings
) -> Bools:
    """``candidates`` after each of ``filters`` in turn."""
    for narrow in filters:
        if not candidates.any():
            break
        left = narrow(request, candidates, settings)
        candidates = left if left.any() else candidates
    return candidates
