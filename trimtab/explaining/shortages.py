"""Says where policies or drains leave too few brokers: problems that an operator must solve."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Final

import numpy as np

from trimtab.explaining.words import format_count, name_some, percent
from trimtab.filters.isolation import Permits
from trimtab.load import usage
from trimtab.settings import Settings
from trimtab.view import View

_NAMED: Final = 3
"""Draining brokers that a sentence names."""


def find_shortages(view: View, settings: Settings) -> Iterator[str]:
    """Every policy and drain of the view that leaves too few brokers."""
    if view.brokers.available.any():
        # Where no broker is available at all, that is the problem, and the doubt says so.
        yield from _isolation(view)
    draining = [name for name in view.brokers.names if name in view.trouble.draining]
    problem = say_left(draining, *_left(view, settings), settings) if draining else None
    if problem:
        yield problem


def say_left(draining: Collection[str], left: int, needed: float, settings: Settings) -> str | None:
    """What is wrong with draining these brokers, if ``needed``, the usage (fraction) that the
    ``left`` ones would then have, is too much; None if it is not."""
    names = name_some(sorted(draining), _NAMED)
    limit = settings.round.overloaded_threshold
    if not left:
        return f"draining {names}: no broker is left that may get their bundles; undrain one"
    if not needed > limit:
        return None
    return (
        f"draining {names}: with all bundles the {format_count(left, 'broker')} left would be at "
        f"about {percent(needed)}, above round.overloaded_threshold of {percent(limit)}; undrain "
        "some or add brokers"
    )


def estimate_left(usages: Mapping[str, float], out: Collection[str]) -> tuple[int, float]:
    """How many brokers are left without ``out``, and their usage with all bundles, as if all
    brokers were equal; ``usages`` are fractions by broker."""
    left = len(usages.keys() - set(out))
    return left, sum(usages.values()) / left if left else 0.0


def _left(view: View, settings: Settings) -> tuple[int, float]:
    """The shortage by the limits of each resource."""
    brokers = view.brokers
    left = brokers.available
    drained = np.array([name in view.trouble.draining for name in brokers.names], dtype=np.bool_)
    carrying = left | drained
    with np.errstate(all="ignore"):
        used = (brokers.resources * brokers.limits)[:, carrying].sum(axis=1)
        limits = brokers.limits[:, left].sum(axis=1)
        percents = np.where(limits > 0, used / limits, 0.0)
    return int(left.sum()), float(usage(percents[:, np.newaxis], settings.weights)[0])


def _isolation(view: View) -> Iterator[str]:
    permits, available = Permits(view.policies, view.brokers), view.brokers.available
    for name, policy in view.policies.isolation.items():
        there = int(permits.under(name, available).sum())
        least = max(1, policy.min_available)
        if there < least:
            patterns = ", ".join((*policy.primary, *policy.secondary))
            yield (
                f"isolation policy {name}: {format_count(there, 'available broker')} for the "
                f"{least} that it needs (primary and secondary: {patterns}); "
                + ("its bundles go to no other" if there else "its bundles can go to no broker")
            )
