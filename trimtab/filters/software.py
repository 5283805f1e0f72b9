"""Keep brokers with the right software (Pulsar BrokerVersionFilter, LoadManagerClassFilter).

Versions are semantic: numbers, then pre-release (below the release), then build (above it).
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

import numpy as np

from trimtab.arrays import Bools, Ints
from trimtab.filters.request import Request
from trimtab.settings import Settings

_VERSION: Final = re.compile(
    r"(\d+)\.(\d+)\.(\d+)(?:-([0-9A-Za-z.-]+))?(?:\+([0-9A-Za-z.-]+))?", re.ASCII
)

_Identifier = tuple[bool, int, str]
_Order = tuple[int, int, int, bool, tuple[_Identifier, ...], tuple[_Identifier, ...]]


def load_manager_class(request: Request, candidates: Bools, settings: Settings) -> Bools:
    """Keep brokers of the wanted class, and those that do not report theirs."""
    wanted = settings.placement.load_manager
    if not wanted:
        return candidates
    classes = request.view.brokers.load_managers
    return candidates & np.array([name in ("", wanted) for name in classes], dtype=np.bool_)


def latest_version(request: Request, candidates: Bools, settings: Settings) -> Bools:
    """Keep brokers of the highest version; does nothing if a candidate's version is unreadable."""
    if not settings.placement.prefer_later_versions or not candidates.any():
        return candidates
    ranks = _ranks(request.view.brokers.versions)
    if (ranks[candidates] < 0).any():
        return candidates
    latest: Bools = candidates & (ranks == ranks[candidates].max())
    return latest


@lru_cache(maxsize=8)
def _ranks(versions: tuple[str, ...]) -> Ints:
    """(n,) the rank of each version in ascending order, -1 where it is no version."""
    orders = {version: _order(version) for version in set(versions)}
    ascending = sorted({order for order in orders.values() if order is not None})
    rank = {order: place for place, order in enumerate(ascending)}
    found = (orders[version] for version in versions)
    return np.array([-1 if order is None else rank[order] for order in found], dtype=np.int64)


def _order(version: str) -> _Order | None:
    match = _VERSION.fullmatch(version)
    if match is None:
        return None
    pre, build = _identifiers(match[4]), _identifiers(match[5])
    return int(match[1]), int(match[2]), int(match[3]), not pre, pre, build


def _identifiers(text: str | None) -> tuple[_Identifier, ...]:
    """The dotted parts as sort keys: numbers before words, each in its own order."""
    parts = text.split(".") if text else []
    return tuple((not part.isdigit(), int(part) if part.isdigit() else 0, part) for part in parts)
