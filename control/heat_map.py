"""The usage of brokers, or of failure domains, over the last rounds: the rows of a heat map."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from control.listing import broker_states, describe_brokers
from control.rounds import ClusterRounds
from control.usage_history import RoundUsage, tabulate
from sinks.redis.ownership_store import OwnershipStore
from trimtab.policies import NO_POLICIES

MANY: Final = 60
"""Brokers of a cluster above which failure domains are shown instead, if there are any."""
_DIGITS: Final = 4
"""Digits of a fraction: a hundredth of a percent."""


class By(StrEnum):
    """What a row is."""

    AUTO = "auto"
    """Failure domains if there are some and the cluster has many brokers."""
    BROKER = "broker"
    DOMAIN = "domain"


class Part(NamedTuple):
    """Which rows: of the brokers that match every part that is not empty, ``most`` after one."""

    by: By = By.AUTO
    domain: str | None = None
    """Only its brokers; "": those without a domain."""
    match: str = ""
    """A part of the name of brokers."""
    after: str = ""
    most: int = 50
    rounds: int = 60


class HeatMap(NamedTuple):
    """Rows with a cell for each round, the oldest first; usage as fractions."""

    by: By
    total: int
    """Brokers, or failure domains, of all pages."""
    next: str | None
    rounds: list[dict[str, Any]]
    rows: list[dict[str, Any]]


def draw(last: ClusterRounds, part: Part, store: OwnershipStore) -> HeatMap:
    """The part of the heat map of a cluster that is asked for. Raises the store's errors."""
    history = last.usage[-part.rounds :]
    domains = (last.newest.policies or NO_POLICIES).domains
    by = part.by
    if by is By.AUTO:
        plain = part.domain is None and not part.match
        grouped = plain and bool(domains) and len(last.newest.usage) > MANY
        by = By.DOMAIN if grouped else By.BROKER
    rounds = [_moment(each) for each in history]
    if by is By.DOMAIN:
        rows = _domain_rows(last, history, domains)
        return HeatMap(by, len(rows), None, rounds, rows)
    states = broker_states(last.newest)
    shown = _busiest_first(_wanted(states, part, domains), last.newest.usage)
    start = shown.index(part.after) + 1 if part.after in shown else 0
    page = shown[start : start + part.most]
    more = page[-1] if start + len(page) < len(shown) else None
    cells = tabulate(history, page)
    rows = [
        {**row._asdict(), "domain": domains.get(row.broker), "history": _told(line)}
        for row, line in zip(describe_brokers(last.newest, store, page, states), cells, strict=True)
    ]
    return HeatMap(by, len(shown), more, rounds, rows)


def _wanted(states: Iterable[str], part: Part, domains: Mapping[str, str]) -> list[str]:
    needle = part.match.lower()
    return [
        broker
        for broker in states
        if needle in broker.lower()
        and (part.domain is None or domains.get(broker, "") == part.domain)
    ]


def _busiest_first(brokers: list[str], usage: Mapping[str, float]) -> list[str]:
    return sorted(brokers, key=lambda broker: (-usage.get(broker, 0.0), broker))


def _domain_rows(
    last: ClusterRounds, history: Sequence[RoundUsage], domains: Mapping[str, str]
) -> list[dict[str, Any]]:
    """A row for each failure domain, that of the busiest broker first; a cell is the usage of the
    busiest broker of the domain."""
    newest, states = last.newest, broker_states(last.newest)
    every = [*states]
    cells = tabulate(history, every)
    members: dict[str, list[int]] = {}
    for place, broker in enumerate(every):
        members.setdefault(domains.get(broker, ""), []).append(place)
    rows = []
    for name, places in members.items():
        brokers = [every[place] for place in places]
        seen = [newest.usage[broker] for broker in brokers if broker in newest.usage]
        rows.append(
            {
                "name": name,
                "brokers": len(brokers),
                "states": dict(Counter(states[broker] for broker in brokers)),
                "usage": max(seen, default=None),
                "lowest": min(seen, default=None),
                "mean": sum(seen) / len(seen) if seen else None,
                "history": _told(_highest(cells[places])),
            }
        )
    return sorted(rows, key=lambda row: (-(row["usage"] or 0.0), row["name"]))


def _highest(cells: NDArray[np.float32]) -> NDArray[np.float32]:
    """The highest of each column; NaN where all are."""
    highest: NDArray[np.float32] = np.fmax.reduce(cells, axis=0)
    return highest


def _told(cells: NDArray[np.float32]) -> list[float | None]:
    return [None if np.isnan(each) else round(float(each), _DIGITS) for each in cells]


def _moment(each: RoundUsage) -> dict[str, Any]:
    return {
        "round": each.round,
        "at": each.at,
        "changes": each.changes,
        "min": each.summary.get("usage_min"),
        "mean": each.summary.get("usage_mean"),
        "max": each.summary.get("usage_max"),
    }
