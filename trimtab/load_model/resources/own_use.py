"""What brokers take by themselves, beyond what their bundles explain: does it last, or pass?

Garbage that is collected, a compaction and a neighbour on the machine take processors for a while
or for good. Of such use no more is known than how long it has been watched, and it is as likely as
not to last as long again:

doubted = 15 min / (15 min + time watched) of it
usage   = with what is doubted or without it, whichever is nearer to the mean of all brokers: until
          it has lasted, a broker neither gives nor receives for what it takes by itself
Where several resources compete, that holds for each of them: what the traffic of a broker's bundles
does not explain counts as the broker's own.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from trimtab.arrays import Floats, Ints
from trimtab.load_model.caution import count_nearer

_FIRST_S: Final = 900.0
"""Time (s) after which half of it is believed. Shorter: brokers that collect garbage in turn are
balanced as they happen to be found; longer: a broker that is busy for good waits."""


def doubted_part(watched_s: Floats) -> Floats:
    """The part of what brokers take by themselves that may pass."""
    part: Floats = _FIRST_S / (_FIRST_S + watched_s)
    return part


def find_unusual(own: Floats, kind: Ints) -> Floats:
    """(n,) by how much brokers take more by themselves than the lower median of their kind: of two
    the one that takes more is unusual."""
    usual = np.zeros(len(own))
    for number in range(int(kind.max(initial=-1)) + 1):
        alike = np.sort(own[kind == number])
        usual[kind == number] = alike[(len(alike) - 1) // 2]
    unusual: Floats = own - usual
    return unusual


def leave_out_doubted(usage: Floats, doubted: Floats) -> Floats:
    """(..., n) usage, without what is doubted as far as that brings it nearer to the mean."""
    if not usage.size:
        return usage
    return count_nearer(usage, usage - doubted, usage.mean(axis=-1, keepdims=True))


def leave_out_unexplained(shares: Floats, explained: Floats, part: Floats, kind: Ints) -> Floats:
    """(r, n) ``shares`` of resources, without what is doubted, (n,) ``part``, of what is unusual
    beyond the (r, n) ``explained`` ones."""
    unusual = np.array([find_unusual(row, kind) for row in shares - explained])
    return leave_out_doubted(shares, part * unusual)
