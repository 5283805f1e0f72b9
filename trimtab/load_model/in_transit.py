"""Bundles that a plan moved and that no broker reports at the moment.

Their old broker no longer reports them, or is not believed, and their new one does not yet: for one
or two reports they are not in the view, but their destination will carry them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from trimtab.arrays import Floats
from trimtab.load_model.estimating.estimates import Estimates, Keys
from trimtab.load_model.estimating.rows import are_among, locate_keys
from trimtab.load_model.estimating.sampling import AWAY_MS
from trimtab.names import identities

Sent = Mapping[str, tuple[str, int]]
"""Bundle to the broker it was sent to, and when (ms)."""


def send_off(sent: Sent, moves: Mapping[str, str], now_ms: int) -> dict[str, tuple[str, int]]:
    """Add a plan's moves, bundle to destination; drop those that had time to arrive."""
    horizon = now_ms - AWAY_MS
    kept = {bundle: (to, at) for bundle, (to, at) in sent.items() if at >= horizon}
    return kept | {bundle: (to, now_ms) for bundle, to in moves.items()}


def find_arriving(
    sent: Sent, brokers: Sequence[str], keys: Keys, estimates: Estimates, now_ms: int
) -> Floats:
    """(n,) total size of the unreported bundles that were sent to each of ``brokers``; ``keys`` are
    those of the reported bundles."""
    total = np.zeros(len(brokers))
    horizon = now_ms - AWAY_MS
    row_of = {broker: row for row, broker in enumerate(brokers)}
    names = [b for b, (to, at) in sent.items() if at >= horizon and to in row_of]
    if not names:
        return total
    wanted = identities(names)
    at, known = locate_keys(estimates, wanted)
    absent = known & ~are_among(wanted, keys)
    rows = np.array([row_of[sent[name][0]] for name in names], np.int64)
    np.add.at(total, rows[absent], estimates.current[at[absent]])
    return total
