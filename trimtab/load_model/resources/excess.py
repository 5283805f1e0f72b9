"""Brokers that are busier, or less busy, than what they carry explains: for a while, or for good.

excess = use of a broker beyond what its traffic, its bundles and it itself are expected to take, in
         parts of the limit of the resource where that is most
spell  = begins when an excess is no noise and no bundle came or went of late: a backup, a
         collection of garbage and a neighbour on the machine are alike in this
While a spell may pass (`trimtab.load_model.estimating.doubted_leaps`, as for bundles that leap) the
broker teaches nothing of needs: what it takes for a while would be dealt out to its bundles, and
these would seem heavy until they have moved away. A broker near overload is believed at once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np

from trimtab.arrays import Bools, Floats
from trimtab.load_model.estimating.doubted_leaps import find_young
from trimtab.load_model.estimating.estimates import Keys
from trimtab.load_model.estimating.leap_record import LeapRecord, close_leaps, open_leaps
from trimtab.load_model.estimating.rows import find_keys

_FAR: Final = 5.0
"""Standard deviations of an excess that is no noise."""
_LEAST: Final = 0.05
"""Parts of a limit that it must be. Lower: what is misjudged of bundles begins spells; higher:
backups of little weight are answered."""


class Excess(NamedTuple):
    """(n,) columns of brokers."""

    keys: Keys
    """`hash_brokers`, in any order."""
    off: Floats
    deviation: Floats
    """Of ``off``, by noise."""
    calm: Bools
    """Whether there is a new report, of the bundles that the broker has had for some time."""
    near_overload: Bools


def hash_brokers(names: Sequence[str]) -> Keys:
    """(n,) a number for each name, the same in every process."""
    return np.array([_hash(name) for name in names], np.uint64)


@lru_cache(maxsize=1 << 16)
def _hash(broker: str) -> int:
    return int.from_bytes(hashlib.blake2b(broker.encode(), digest_size=8).digest(), "little")


def note_spells(past: LeapRecord, found: Excess, now_ms: int) -> tuple[LeapRecord, Bools]:
    """The record after a round, and (n,) brokers whose excess may pass.

    In the record ``after`` is an excess when it began, and ``before`` what of it is believed: none
    while it may pass, and then all.
    """
    order = np.argsort(found.keys)
    keys, passing = found.keys[order], np.zeros(len(order), np.bool_)
    at, here = find_keys(past.keys, keys)
    off, calm = found.off[order], found.calm[order]
    left = (off[at] + past.before) * np.sign(past.after)
    over = here & calm[at] & (left < np.abs(past.after) / 2)
    begins = calm & (np.abs(off) > np.maximum(_FAR * found.deviation[order], _LEAST))
    begins[at[here]] = False
    record = close_leaps(past, here, over, now_ms)
    count = int(begins.sum())
    levels = (np.zeros(count), off[begins])
    record = open_leaps(record, keys[begins], levels, np.full(count, now_ms, np.int64))
    at = np.searchsorted(keys, record.keys)
    held = find_young(record, now_ms) & ~found.near_overload[order][at] & (record.before == 0)
    record = replace(record, before=np.where(held, 0.0, record.after))
    passing[order[at[held]]] = True
    return record, passing


def count_held(record: LeapRecord) -> int:
    """How many brokers have an excess that may pass."""
    return int(np.count_nonzero(record.before == 0))
