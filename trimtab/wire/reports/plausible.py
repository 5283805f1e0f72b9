"""The limits of hardware: a reading beyond them is a measurement error or a lie, not a load.

A report with such a reading is rejected as a whole, and the broker's last report stands until the
broker counts as silent. Milder treatment would still affect decisions about other brokers:

capped           the broker would look like the busiest of all: its bundles would go to others, and
                 averages and ranges of the fleet would follow the cap
used as unknown  Pulsar counts an unknown resource as 0 %: the broker would look idle and get
                 bundles of others

Pulsar believes every reading. Readings that are believed here count as in Pulsar, also above 100 %.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from trimtab.arrays import BANDWIDTH_IN, BANDWIDTH_OUT, THROUGHPUT_IN, THROUGHPUT_OUT, Floats
from trimtab.wire.reports.load_report import Resource

LIMIT: Final = 1e15
"""No figure of a broker is larger; sums and binary32 ratios stay finite below."""

_LEAST_LIMIT: Final = 0.1
"""Percent, MiB and kbit/s. The smallest CPU share that Linux grants is 1 ms per second."""


class Doubtful(NamedTuple):
    """A figure that is not believed."""

    field: str
    """The member of the report; a label of the counter."""
    detail: str


class _Bound(NamedTuple):
    field: str
    ratio: float
    """The highest ratio of usage to limit that is believed."""
    limit: float
    """The largest limit that is a real one."""
    unlimited: float
    """From this value on, a limit means that there is none."""


# Processors: a group's burst is at most its quota, so it uses at most twice its limit
# (cpu.max.burst). Linux supports 8192 of them.
# Memory: Netty and the JVM may each use the limit of direct memory. 52 bits of physical addresses
# are 4 PiB; a limit of 2^63 bytes means "none" in Java and control groups.
# Bandwidth: here the limit is wrong more often. A veth says 10 Gbit/s where 100 are wired, a
# bridge above a bond counts bytes three times, and a NIC speed may be set by hand. Below 100
# Tbit/s; an old kernel says 2^32 - 1 Mbit/s for an unknown speed.
_RESOURCES: Final = (
    _Bound("cpu", 2.0, 819_200.0, math.inf),
    _Bound("memory", 2.0, 2.0**32, 2.0**42),
    _Bound("directMemory", 2.0, 2.0**32, 2.0**42),
    _Bound("bandwidthIn", 10.0, 1e11, 4e12),
    _Bound("bandwidthOut", 10.0, 1e11, 4e12),
)
RESOURCE_FIELDS: Final = tuple(bound.field for bound in _RESOURCES)

TRAFFIC_FIELDS: Final = ("msgRateIn", "msgRateOut", "msgThroughputIn", "msgThroughputOut")
COUNT_FIELDS: Final = ("topics", "consumerCount", "producerCount", "cacheSize")

_MOST_TRAFFIC: Final = (1e9, 1e9, 1e12, 1e12)
"""The limits of a broker: messages/s, a link of 400 Gbit/s full of 50-byte messages; bytes/s, ten
links of 800 Gbit/s."""

MOST_TOPICS: Final = 1e8
"""The most topics, or clients, of a broker. Each takes kilobytes: no machine has that much memory.
"""

_MOST_COUNT: Final = (MOST_TOPICS, MOST_TOPICS, MOST_TOPICS, LIMIT)

_BANDWIDTHS: Final = ((BANDWIDTH_IN, THROUGHPUT_IN), (BANDWIDTH_OUT, THROUGHPUT_OUT))
_BYTES: Final = 1000.0 / 8.0
"""Bytes per kilobit."""


def doubtful_resource(resources: Sequence[Resource]) -> Doubtful | None:
    """The first of the five resources that no hardware has; None if all are believed."""
    for (field, ratio, largest, unlimited), each in zip(_RESOURCES, resources, strict=True):
        usage, limit = each.usage, each.limit
        beyond = limit < _LEAST_LIMIT or largest < limit < unlimited or usage > ratio * limit
        if limit > 0 and beyond:
            return Doubtful(field, f"{field} is {usage:g} of a limit of {limit:g}")
    return None


def doubtful_traffic(traffic: Floats, limit: Floats) -> Doubtful | None:
    """The first of the (4,) traffic figures, a broker's own or summed over its bundles, that is not
    believed: more than any machine carries, or ten times what the ``limit`` (5,) of its network
    allows."""
    most = list(_MOST_TRAFFIC)
    for resource, row in _BANDWIDTHS:
        bound, allowed = _RESOURCES[resource], float(limit[resource])
        if 0 < allowed <= bound.limit:
            most[row] = min(most[row], bound.ratio * _BYTES * allowed)
    return _first_beyond(TRAFFIC_FIELDS, traffic, most)


def doubtful_counts(counts: Floats) -> Doubtful | None:
    """The first of the (4,) counts, summed over a broker's bundles, that no machine holds."""
    return _first_beyond(COUNT_FIELDS, counts, _MOST_COUNT)


def _first_beyond(names: Iterable[str], figures: Floats, most: Iterable[float]) -> Doubtful | None:
    for name, figure, bound in zip(names, figures.tolist(), most, strict=True):
        if figure > bound:
            return Doubtful(name, f"{name} of the broker is {figure:g}, at most {bound:g} can be")
    return None
