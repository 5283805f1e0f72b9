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

from collections.abc import Mapping
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
    past: Mapping[str, Hosted], view: View, keys: Keys, unreported: Unreported, settings: Settings
) -> dict[str, Hosted]:
    """Broker to what is known of it; ``keys``: (m,) of the bundles of the view."""
    names = view.brokers.names
    checksums = np.zeros(len(names), np.uint64)
    np.add.at(checksums, view.bundles.owner, keys)
    # What a report lacks did not go.
    np.add.at(checksums, unreported.where, unreported.keys)
    newest, average = _read_usage(view.brokers, settings)
    columns = (checksums, view.brokers.reported_ms, newest, np.minimum(newest, average))
    reported = map(Hosted, *(column.tolist() for column in columns))
    return {
        name: _follow(past.get(name, new), new, view.now_ms)
        for name, new in zip(names, reported, strict=True)
    }


def read_reports(history: PlannerHistory, brokers: Brokers, settings: Settings) -> Reports:
    """What bounds the usage of brokers, by a history that counts their reports."""
    known = [history.hosted[name] for name in brokers.names]
    changed_ms = np.array([each.changed_ms for each in known], np.int64)
    stirs = np.sqrt([each.stirs for each in known])
    strays = np.array([history.strays[name] for name in brokers.names])
    erring = np.linalg.norm(strays) > _ERRING * np.linalg.norm(stirs)
    newest, average = _read_usage(brokers, settings)
    high = np.maximum(newest, average)
    return Reports(
        low=np.minimum(newest, average),
        high=np.where(newest > find_near_overload(settings), np.inf, high),
        least=np.array([each.least for each in known]),
        binding=erring & (brokers.reported_ms - changed_ms >= SETTLED_MS),
        clear=max(_CLEAR, _FAR * float(np.median(stirs))) if known else _CLEAR,
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


def _follow(known: Hosted, new: Hosted, now_ms: int) -> Hosted:
    """What is known of a broker after a ``new`` report, as if it were the first one."""
    elapsed_ms = max(new.seen_ms - known.seen_ms, 0)
    changed_ms = known.changed_ms if known.checksum == new.checksum else now_ms
    least = new.least
    if new.seen_ms - changed_ms < SETTLED_MS:
        least = 0.0
    elif known.least:
        # It rises, or one night would count for ever.
        least = min(least, known.least * rise(elapsed_ms / 1000))
    fading = 0.5 ** (elapsed_ms / _HALF_LIFE_MS)
    square = (new.newest - known.newest) ** 2 / 2
    stirs = fading * known.stirs + (1 - fading) * square
    return new._replace(changed_ms=changed_ms, least=least, stirs=stirs)


def _read_usage(brokers: Brokers, settings: Settings) -> tuple[Floats, Floats]:
    """(n,) the newest usage that is reported, and the average."""
    newest = usage(brokers.resources, settings.weights)
    return newest, usage(brokers.smoothed_resources, settings.weights)
