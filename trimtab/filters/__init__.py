"""Which brokers a bundle may go to, filtered in the order of Pulsar's managers.

`reachable` is the hard limit. Each of FILTERS then narrows it; a filter that would leave no broker
is ignored. Those of EXTENSIBLE, the extensible manager's, all bind.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from trimtab.arrays import Bools
from trimtab.filters.affinity import GroupCount, counts, may_leave, spread
from trimtab.filters.request import Request
from trimtab.filters.room import evenness, topic_cap, topic_room
from trimtab.filters.software import latest_version, load_manager_class
from trimtab.settings import Settings

Filter = Callable[[Request, Bools, Settings], Bools]
"""(request, candidates, settings) to the remaining candidates; all of shape (n,)."""


def find_permitted(request: Request) -> Bools:
    """The brokers that are available and that the namespace's policies allow."""
    available = request.view.brokers.available
    return request.projection.permits.of(request.namespace, available)


def reachable(request: Request) -> Bools:
    """The brokers that may receive at all: permitted, and not the one that the bundle leaves."""
    allowed = find_permitted(request)
    if request.source is not None:
        allowed[request.source] = False
    return allowed


def anti_affinity(request: Request, candidates: Bools, settings: Settings) -> Bools:
    """Keep brokers with the fewest namespaces of the bundle's anti-affinity group."""
    return spread(request, candidates, GroupCount.NAMESPACES, settings)


def bundle_anti_affinity(request: Request, candidates: Bools, settings: Settings) -> Bools:
    """Keep brokers with the fewest bundles of the group, as the extensible manager counts."""
    return spread(request, candidates, GroupCount.BUNDLES, settings)


CAPS: Final[tuple[Filter, ...]] = (
    topic_cap,
    anti_affinity,
    load_manager_class,
    latest_version,
)
"""The filters that also bind a destination that a shedder chose itself."""

UNCOUNTED: Final = tuple(each for each in CAPS if each is not anti_affinity)
"""Those of CAPS that count no namespace's bundles: a round's hints to lookups stay true while they
place some."""

FILTERS: Final[tuple[Filter, ...]] = (
    topic_cap,
    anti_affinity,
    evenness,
    load_manager_class,
    latest_version,
)

EXTENSIBLE: Final[tuple[Filter, ...]] = (
    load_manager_class,
    topic_room,
    latest_version,
    bundle_anti_affinity,
)


def narrow(
    request: Request, candidates: Bools, filters: tuple[Filter, ...], settings: Settings
) -> Bools:
    """Apply each of ``filters`` in turn to ``candidates``; skip one that would leave no broker."""
    for narrow in filters:
        left = narrow(request, candidates, settings)
        # A filter that does not apply returns its argument.
        if left is not candidates and left.any():
            candidates = left
    return candidates


def transferable(request: Request, destination: int, settings: Settings) -> bool:
    """Whether the extensible manager would let the bundle go to ``destination``."""
    candidates = find_permitted(request)
    for narrow in EXTENSIBLE:
        candidates = narrow(request, candidates, settings)
    return bool(candidates[destination])


def may_unload(request: Request) -> bool:
    """Whether the bundle's anti-affinity group lets it leave ``request.source``."""
    had = counts(request, GroupCount.NAMESPACES)
    if request.source is None or had is None:
        return True
    return may_leave(request.source, find_permitted(request), had)
