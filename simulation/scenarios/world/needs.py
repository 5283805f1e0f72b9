"""What a load takes of a broker's resources, and its messages and bytes.

A load of 1 takes the whole of one resource of a broker of the first class: the one that its kind
needs most. Without kinds that is the CPU; links are used in proportion to it, and memory is not.
With kinds a broker's usage is that of its busiest resource without heap memory, as in Pulsar.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from simulation.scenarios.scenario import Need
from trimtab.arrays import (
    BANDWIDTH_IN,
    BANDWIDTH_OUT,
    CPU,
    DIRECT_MEMORY,
    RATE_IN,
    RATE_OUT,
    THROUGHPUT_IN,
    THROUGHPUT_OUT,
    Floats,
)
from trimtab.load import COUNTED

TRAFFIC: Final = np.array([[5e4], [5e4], [5.12e8], [5.12e8]])
"""(4, 1) messages/s and bytes/s, in and out, of a load of 1: enough for no minimum of Pulsar's
strategies to hide a gap that their thresholds see."""
LINK_SHARE: Final = 0.2
"""The share of its links that a fully busy broker uses: its CPU is the busiest resource."""
_LINK: Final = TRAFFIC[THROUGHPUT_IN, 0] * 8 / 1000
LIMITS: Final = np.array([[800.0], [4096.0], [8192.0], [_LINK / LINK_SHARE], [_LINK / LINK_SHARE]])
"""(5, 1) limits of a broker of the first class: eight processors in percent, heap and direct memory
in MiB, links in kbit/s."""
FULL: Final = np.array([[800.0], [0.0], [0.0], [_LINK], [_LINK]])
"""(5, 1) what a load of 1 without a kind takes of it."""
IDLE: Final = np.array([[0.0], [1638.4], [819.2], [0.0], [0.0]])
"""(5, 1) what the broker uses without load."""
MOST: Final = {
    "processor": [CPU],
    "network": [BANDWIDTH_IN, BANDWIDTH_OUT],
    "memory": [DIRECT_MEMORY],
}
"""What bundles may need most."""


@dataclass(frozen=True, slots=True, eq=False)
class Needs:
    """What loads of k kinds take."""

    used: Floats
    """(5, k) of a load of 1, in the units of `LIMITS`."""
    traffic: Floats
    """(4, k) of a load of 1: messages/s and bytes/s."""
    shares: Floats
    """(r, k) of the resources that count, in fractions of a broker of the first class."""
    idle: Floats
    """(r, 1) the same without load."""

    def usage(self, carried: Floats, capacity: Floats, busy: Floats) -> Floats:
        """(n,) usage of brokers, fractions; ``carried`` (k, n) is their load by kind, ``busy`` (n,)
        the part of their processors that is in use whatever they carry."""
        if not self.idle.any() and len(self.shares) == 1:
            plain: Floats = carried[0] / capacity + busy
            return plain
        used = self.shares @ carried / capacity + self.idle
        used[0] += busy
        highest: Floats = used.max(axis=0)
        return highest


PLAIN: Final = Needs(FULL, TRAFFIC, shares=np.ones((1, 1)), idle=np.zeros((1, 1)))


def needs_of(kinds: Sequence[str], need: Need) -> Needs:
    """The needs of kinds named in `MOST`."""
    if not kinds:
        return PLAIN
    part = np.full((5, len(kinds)), need.others)
    for kind, name in enumerate(kinds):
        part[MOST[name], kind] = 1.0
    traffic = np.empty((4, len(kinds)))
    # As many messages as their handling takes processors, as many bytes as the links carry.
    traffic[[RATE_IN, RATE_OUT]] = TRAFFIC[RATE_IN] * part[CPU if need.told else BANDWIDTH_IN]
    traffic[THROUGHPUT_IN] = TRAFFIC[THROUGHPUT_IN] / LINK_SHARE * part[BANDWIDTH_IN]
    traffic[THROUGHPUT_OUT] = TRAFFIC[THROUGHPUT_OUT] / LINK_SHARE * part[BANDWIDTH_OUT]
    idle = IDLE / LIMITS
    return Needs(part * LIMITS, traffic, part[COUNTED], idle[COUNTED])
