"""What brokers report bounds what is predicted of them, where counters of bundles err.

Counters err if they read 0 in some reports, while the broker is as busy as ever. Then a report's
traffic tells less of its usage than the report before does:

erring = what traffic does not explain of the usage in a report > 1.5 * what usage changes from one
         report to the next; both as deviations of all brokers

Where counters err, a broker's usage is

- no further from its average than its newest report is, with all its bundles as they are
- without those whose leap may pass, no less than it ever was with the same bundles: a leap that
  brought it no higher is none

Only what is clearly beyond that is bounded. For a while after bundles came or went nothing is: what
is known of them is newer than what is reported.
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Final, NamedTuple

import numpy as np

from trimtab.arrays import Bools, Floats
from trimtab.load import usage
from trimtab.load_model.bursts import find_near_overload
from trimtab.load_model.estimating.estimates import Keys
from trimtab.load_model.history import SETTLED_MS, Hosted, PlannerHistory
from trimtab.load_model.resources.costs import rise
from trimtab.load_model.unreported import Unreported
from trimtab.settings import Settings
from trimtab.view import Brokers, View

_ERRING: Final = 1.5
"""The quotient from which counters err. Lower: usage that follows traffic a report late, for which
it is 1.4, counts as counters that err; higher: counters that err now and then are believed."""
_CLEAR: Final = 0.05
"""Usage that is clearly beyond a report, and"""
_FAR: Final = 3.0
"""deviations of a report that are. Lower: the noise of reports is balanced; higher: what counters
say is."""
_HALF_LIFE_MS: Final = 600_000
"""Half-life of what usage changes from a report to the next. Shorter: a calm moment counts for more
than it says; longer: one that has passed does."""


class Reports(NamedTuple):
    """What n brokers report of their usage."""

    low: Floats
    """(n,) the newest or the average, whichever is lower."""
    high: Floats
    """(n,) whichever is higher; infinite near overload: a broker may be busier than it reports."""
    least: Floats
    """(n,) the least with the bundles that they have; 0 where that is not known."""
    binding: Bools
    """(n,) whether counters err, and the newest report tells of the bundles that a broker has."""
    clear: float
    """What is clearly beyond a report."""


def note_hosted(
    past: Hosted, view: View, keys: Keys, unreported: Unreported, settings: Settings
) -> Hosted:
    """What is known of the view's brokers; ``keys``: (m,) of its bundles."""
    brokers = view.brokers
    checksum = np.zeros(len(brokers.names), np.uint64)
    np.add.at(checksum, view.bundles.owner, keys)
    # What a report lacks did not go.
    np.add.at(checksum, unreported.where, unreported.keys)
    newest, average = _read_usage(brokers, settings)
    new = Hosted(
        names=tuple(brokers.names),
        checksum=checksum,
        seen_ms=brokers.reported_ms,
        newest=newest,
        least=np.minimum(newest, average),
        changed_ms=np.zeros(len(newest), np.int64),
        stirs=np.zeros(len(newest)),
    )
    return _follow(_known(past, new), new, view.now_ms)


def read_reports(history: PlannerHistory, brokers: Brokers, settings: Settings) -> Reports:
    """What bounds the usage of brokers, by a history that counts their reports."""
    known = history.hosted
    stirs = np.sqrt(known.stirs)
    strays = np.array([history.strays[name] for name in brokers.names])
    erring = np.linalg.norm(strays) > _ERRING * np.linalg.norm(stirs)
    newest, average = _read_usage(brokers, settings)
    high = np.maximum(newest, average)
    return Reports(
        low=np.minimum(newest, average),
        high=np.where(newest > find_near_overload(settings), np.inf, high),
        least=known.least,
        binding=erring & (brokers.reported_ms - known.changed_ms >= SETTLED_MS),
        clear=max(_CLEAR, _FAR * float(np.median(stirs))) if stirs.size else _CLEAR,
    )


def find_missing(predicted: Floats, reports: Reports) -> Floats:
    """(n,) usage that is clearly reported beyond what is ``predicted`` of the bundles as they are;
    below 0 where less is reported."""
    binding = reports.binding
    if not binding.any():
        return np.zeros_like(predicted)
    missing = np.clip(predicted, reports.low, reports.high) - predicted
    # What is missing on all brokers moves nothing.
    missing -= np.median(missing[binding])
    # Nor is anything taken from one that may be busier than it reports.
    binding = binding & ((missing > 0) | np.isfinite(reports.high))
    return np.where(binding & (np.abs(missing) > reports.clear), missing, 0.0)


def bound_without_leaps(predicted: Floats, full: Floats, reports: Reports) -> Floats:
    """(n,) usage without leaps that may pass: as ``predicted``, or the least that was reported, but
    no more than with the leaps, (n,) ``full``."""
    least = np.minimum(reports.least, full)
    return np.where(reports.binding & (least - predicted > _CLEAR), least, predicted)


def _known(past: Hosted, new: Hosted) -> Hosted:
    """What is known of the brokers that report now: of one that comes, what it reports."""
    if past.names == new.names:
        return past
    row_of = {name: row for row, name in enumerate(past.names)}
    if not row_of:
        return new
    at = np.array([row_of.get(name, -1) for name in new.names], np.int64)
    known = {
        each.name: np.where(at >= 0, getattr(past, each.name)[at], getattr(new, each.name))
        for each in fields(Hosted)
        if each.name != "names"
    }
    return Hosted(new.names, **known)


def _follow(known: Hosted, new: Hosted, now_ms: int) -> Hosted:
    """What is known of brokers after ``new`` reports, as if these were the first ones."""
    elapsed_ms = np.maximum(new.seen_ms - known.seen_ms, 0)
    changed_ms = np.where(known.checksum == new.checksum, known.changed_ms, now_ms)
    # The least rises, or one night would count for ever.
    risen = np.where(known.least > 0, known.least * rise(elapsed_ms / 1000), np.inf)
    settled = new.seen_ms - changed_ms >= SETTLED_MS
    fading = 0.5 ** (elapsed_ms / _HALF_LIFE_MS)
    squares = (new.newest - known.newest) ** 2 / 2
    return replace(
        new,
        least=np.where(settled, np.minimum(new.least, risen), 0.0),
        changed_ms=changed_ms,
        stirs=fading * known.stirs + (1 - fading) * squares,
    )


def _read_usage(brokers: Brokers, settings: Settings) -> tuple[Floats, Floats]:
    """(n,) the newest usage that is reported, and the average."""
    newest = usage(brokers.resources, settings.weights)
    return newest, usage(brokers.smoothed_resources, settings.weights)
