"""Namespaces whose bundles drift together: a tenant that grows is no noise of its bundles.

common   = mean of the residuals of a namespace's bundles
error    = standard deviation of that mean by chance, from how the residuals differ among them
believed = common * (1 - (surely * error / common)^2), and none below surely * error

An average needs a half-life to follow a load that grows steadily, and takes what it lags behind for
noise; a few bundles that all lag the same way tell at once. What is believed each level follows,
and a namespace whose bundles each go their own way changes nothing. A leap is none of this
(`trimtab.load_model.estimating.level_shifts`): it may pass. But what a namespace is off by is no
noise either, however much it is: a tenant that fills within minutes would seem to have noise as
large as what it grew by, and its levels would follow for an hour as if that were chance.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from trimtab.arrays import Bools, Counts, Floats

_FEWEST: Final = 6
"""Bundles of a namespace that tell of a drift. Lower: chance in a few makes one; higher: small
tenants are followed by the averages alone."""
_SURELY: Final = 4.0
"""Standard errors that chance hardly reaches, with so few bundles. Lower: noise is followed;
higher: a drift is followed later."""
_MOST: Final = 0.25
"""The largest drift between samples; what is more is a leap. Lower: a tenant that falls within
minutes is followed late; higher: tenants' bursts are believed at once."""


class Drifts(NamedTuple):
    """(m,) columns of the bundles."""

    by: Floats
    """By how much each bundle's logarithm has drifted with its namespace."""
    leaping: Bools
    """Whether the namespace is surely off by more than a drift."""


def find_drifts(residual: Floats, news: Bools, namespace: Counts) -> Drifts | None:
    """How bundles drift with their namespaces; None if none is surely off its level.

    ``residual``: (m,) of the samples' logarithms; ``news``: (m,) whether there is one;
    ``namespace``: (m,) the row of each bundle's namespace.
    """
    rows, taken = namespace, residual
    if not news.all():
        rows, taken = namespace[news], residual[news]
    spaces = int(namespace.max(initial=-1)) + 1
    count = np.bincount(rows, minlength=spaces)
    mean = np.bincount(rows, taken, spaces) / np.maximum(count, 1)
    squares = np.bincount(rows, taken**2, spaces)
    within = np.maximum(squares - count * mean**2, 0.0)
    free = np.maximum(count - 1, 0)
    # A few residuals that happen to be alike are no certainty.
    usual = float(within.sum()) / max(int(free.sum()), 1)
    variance = np.maximum(within / np.maximum(free, 1), usual)
    error = np.sqrt(variance / np.maximum(count, 1))
    surely = (count >= _FEWEST) & (np.abs(mean) > _SURELY * error)
    if not surely.any():
        return None
    leaping = surely & (np.abs(mean) > _MOST)
    drifting = surely & ~leaping
    by_chance = _SURELY * error[drifting] / mean[drifting]
    believed = np.zeros(len(mean))
    believed[drifting] = mean[drifting] * (1.0 - by_chance**2)
    return Drifts(believed[namespace], leaping[namespace])
