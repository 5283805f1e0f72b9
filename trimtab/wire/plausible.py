"""What hardware can do: a reading beyond it is an error of measurement or a lie, not a load.

A report with such a reading is rejected as a whole, and what the broker reported before stands
until the broker counts as silent. Nothing else keeps it out of what is decided about others:

capped          the broker would look like the busiest of all: its bundles would go to others, and
                averages and ranges of the fleet would follow the cap
taken as unknown  Pulsar counts an unknown resource as 0 %: the broker would look idle, and bundles
                of others would come to it

Pulsar believes every reading. What is believed here decides as in Pulsar, above 100 % too.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final, NamedTuple

import numpy as np

from trimtab.arrays import BANDWIDTH_IN, BANDWIDTH_OUT, THROUGHPUT_IN, THROUGHPUT_OUT, Floats

LIMIT: Final = 1e15
"""No figure of a broker is larger; sums and binary32 ratios stay finite below."""

_LEAST_LIMIT: Final = 0.1
"""Percent, MiB and kbit/s. The smallest share of processors that Linux grants is 1 ms a second."""


class Doubtful(NamedTuple):
    """A figure that is not believed."""

    field: str
    """The report's member; a label of the counter."""
    detail: str


class _Bound(NamedTuple):
    field: str
    ratio: float
    """Usage over limit up to which a reading is believed."""
    limit: float
    """Largest limit that is one."""
    unlimited: float
    """From here on a limit says that there is none."""


# Processors: a group's burst is at most its quota, so it uses twice its limit at most
# (cpu.max.burst). Linux is built for 8192 of them.
# Memory: Netty and the JVM each may use the limit of direct memory. 52 bits of physical addresses
# are 4 PiB; a limit of 2^63 bytes is how Java and control groups say "none".
# Bandwidth: the limit is what is wrong more often. A veth says 10 Gbit/s where 100 are wired, a
# bridge above a bond counts bytes three times, and a NIC speed may be given by hand. Below 100
# Tbit/s; an old kernel says 2^32 - 1 Mbit/s for a speed that it does not know.
_RESOURCES: Final = (
    _Bound("cpu", 2.0, 819_200.0, math.inf),
    _Bound("memory", 2.0, 2.0**32, 2.0**42),
    _Bound("directMemory", 2.0, 2.0**32, 2.0**42),
    _Bound("bandwidthIn", 10.0, 1e11, 4e12),
    _Bound("bandwidthOut", 10.0, 1e11, 4e12),
)
RESOURCE_FIELDS: Final = tuple(bound.field for bound in _RESOURCES)
_RATIO: Final = np.array([bound.ratio for bound in _RESOURCES])
_LARGEST: Final = np.array([bound.limit for bound in _RESOURCES])
_UNLIMITED: Final = np.array([bound.unlimited for bound in _RESOURCES])

TRAFFIC_FIELDS: Final = ("msgRateIn", "msgRateOut", "msgThroughputIn", "msgThroughputOut")
COUNT_FIELDS: Final = ("topics", "consumerCount", "producerCount", "cacheSize")

_MOST_TRAFFIC: Final = np.array([1e9, 1e9, 1e12, 1e12])
"""Of a broker: messages/s, what a link of 400 Gbit/s brings in messages of 50 bytes; bytes/s, ten
links of 800 Gbit/s."""

MOST_TOPICS: Final = 1e8
"""Of a broker, and of its clients. Each takes kilobytes: no machine's memory holds as many."""

_MOST_COUNT: Final = np.array([MOST_TOPICS, MOST_TOPICS, MOST_TOPICS, LIMIT])

_BANDWIDTHS: Final = ((BANDWIDTH_IN, THROUGHPUT_IN), (BANDWIDTH_OUT, THROUGHPUT_OUT))
_BYTES: Final = 1000.0 / 8.0
"""Of a kilobit."""


def doubtful_resource(usage: Floats, limit: Floats) -> Doubtful | None:
    """The first resource (5,) that no hardware has; None if all are believed."""
    known = limit > 0
    beyond = (limit > _LARGEST) & (limit < _UNLIMITED)
    wrong = known & ((limit < _LEAST_LIMIT) | beyond | (usage > _RATIO * limit))
    if not wrong.any():
        return None
    row = int(np.argmax(wrong))
    field = _RESOURCES[row].field
    return Doubtful(field, f"{field} is {usage[row]:g} of a limit of {limit[row]:g}")


def doubtful_traffic(traffic: Floats, limit: Floats) -> Doubtful | None:
    """The first of (4,) sums over a broker's bundles, or of its own figures, that no machine
    carries: too much at all, or for the ``limit`` (5,) of its network, as much as is believed of
    bandwidth itself."""
    most = _MOST_TRAFFIC.copy()
    for resource, row in _BANDWIDTHS:
        if 0 < limit[resource] <= _LARGEST[resource]:
            most[row] = min(most[row], _RATIO[resource] * _BYTES * limit[resource])
    return _first_beyond(TRAFFIC_FIELDS, traffic, most)


def doubtful_counts(counts: Floats) -> Doubtful | None:
    """The first of (4,) sums over a broker's bundles that no machine holds."""
    return _first_beyond(COUNT_FIELDS, counts, _MOST_COUNT)


def _first_beyond(names: Iterable[str], figures: Floats, most: Floats) -> Doubtful | None:
    for name, figure, bound in zip(names, figures.tolist(), most.tolist(), strict=True):
        if figure > bound:
            return Doubtful(name, f"{name} of the broker is {figure:g}, at most {bound:g} can be")
    return None
