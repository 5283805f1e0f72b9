"""A cluster made from a seed, as columns, and the same as the snapshots and records of a job.

A tenth of the brokers is hot; few of a broker's bundles carry most of its messages. What strategies
sort by is never equal, so that no tie is left to the order of a hash map.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from trimtab.arrays import Floats, Ints
from trimtab.intake.assemble import Holdings
from trimtab.intake.snapshot import Snapshot
from trimtab.load import percentages
from trimtab.model import Epoch
from trimtab.ownership import State
from trimtab.wire.ownership import Record

CLUSTER: Final = "bench"
NOW_MS: Final = 1_800_000_000_000
RANGES: Final = 64
"""Bundles of a namespace, unless others are asked for; the last one may have fewer."""
_HOT_SHARE: Final = 0.1


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """n brokers and m bundles, the bundles in order of their owners; rows as in a view."""

    brokers: tuple[str, ...]
    bundles: tuple[str, ...]
    owner: Ints
    used: Floats
    """(5, n)"""
    limit: Floats
    stats: Floats
    """(4, m) as last reported, and the short average."""
    long: Floats
    counts: Ints
    """(4, m)"""


def columns(
    brokers: int, each: int, seed: int, *, even: bool = False, ranges: int = RANGES
) -> Columns:
    """``each`` bundles on every broker, ``ranges`` of a namespace; ``even``: all brokers carry the
    same."""
    rng = np.random.default_rng(seed)
    owner = np.repeat(np.arange(brokers), each)
    heat = np.where(rng.random(brokers) < _HOT_SHARE, 2.0, 0.4) + 0.9 * rng.random(brokers)
    rate = 50.0 * heat[owner] / (0.05 + rng.random(brokers * each))
    size = 200.0 + 1800.0 * rng.random(brokers * each)
    copies = 1.0 + 2.0 * rng.random(brokers * each)
    stats = np.stack((rate, rate * copies, rate * size, rate * size * copies))
    if even:
        carried = stats.reshape(4, brokers, each).sum(axis=2)
        stats *= np.repeat(carried.mean(axis=1, keepdims=True) / carried, each, axis=1)
    return Columns(
        brokers=broker_names(brokers),
        bundles=tuple(_names(brokers * each, ranges)),
        owner=owner,
        used=_used(stats.reshape(4, brokers, each).sum(axis=2), each, rng),
        limit=np.repeat([[1600.0], [8192.0], [8192.0], [1e7], [1e7]], brokers, axis=1),
        stats=stats,
        long=stats * (0.8 + 0.4 * rng.random(brokers * each)),
        counts=_counts(brokers, each, rng),
    )


def broker_names(count: int) -> tuple[str, ...]:
    return tuple(f"broker-{row:05d}:8080" for row in range(count))


def carrying(owner: Ints, load: Floats, usage: Floats) -> Columns:
    """Bundles (m,) of these loads on brokers (n,) whose processors are used that much, and nothing
    else of them is; ``owner`` is ascending."""
    brokers, zero = len(usage), np.zeros(len(usage))
    stats = np.stack((load, load, 1024.0 * load, 1024.0 * load))
    return Columns(
        brokers=broker_names(brokers),
        bundles=tuple(_names(len(owner), RANGES)),
        owner=owner,
        used=np.stack((1600.0 * usage, zero, zero, zero, zero)),
        limit=np.repeat([[1600.0], [8192.0], [8192.0], [1e7], [1e7]], brokers, axis=1),
        stats=stats,
        long=stats,
        counts=np.ones((4, len(owner)), np.int64),
    )


def _names(count: int, ranges: int) -> Iterator[str]:
    width = (1 << 32) // ranges
    bounds = [min(width * place, 0xFFFFFFFF) for place in range(ranges + 1)]
    for row in range(count):
        namespace, place = divmod(row, ranges)
        yield f"bench/ns-{namespace:06d}/0x{bounds[place]:08x}_0x{bounds[place + 1]:08x}"


def _used(traffic: Floats, each: int, rng: np.random.Generator) -> Floats:
    """Processor use grows with messages and saturates; memory is random; the network is wide."""
    brokers = traffic.shape[1]
    return np.stack(
        (
            1600.0 * np.tanh(traffic[0] / each / 320.0),
            8192.0 * (0.2 + 0.5 * rng.random(brokers)),
            8192.0 * (0.1 + 0.3 * rng.random(brokers)),
            traffic[2] * 8 / 1000,
            traffic[3] * 8 / 1000,
        )
    )


def _counts(brokers: int, each: int, rng: np.random.Generator) -> Ints:
    topics = rng.integers(1, 51, brokers * each)
    # Of two bundles alike in all else TransferShedder compares cached bytes, in steps of 100 kB.
    cached = rng.permuted(np.tile(np.arange(each), (brokers, 1)), axis=1).ravel() * 100_000
    return np.stack((topics, 2 * topics, topics, cached))


def snapshots(made: Columns) -> list[Snapshot]:
    """Snapshots of all brokers as operator ① would have them once averages have settled."""
    resources = percentages(made.used, made.limit)
    ends = np.searchsorted(made.owner, np.arange(len(made.brokers) + 1)).tolist()
    return [
        _snapshot(made, row, slice(ends[row], ends[row + 1]), resources[:, row])
        for row in range(len(made.brokers))
    ]


def _snapshot(made: Columns, row: int, own: slice, resources: Floats) -> Snapshot:
    stats, count = made.stats[:, own], own.stop - own.start
    # One by one, as Pulsar adds them: sum would add pairwise and differ in the last bit.
    traffic = np.cumsum(stats, axis=1)[:, -1:].sum(axis=1)
    return Snapshot(
        broker=made.brokers[row],
        session=1,
        sequence=1,
        appended_ms=NOW_MS,
        sampled_ms=NOW_MS,
        start_ms=NOW_MS,
        version="4.0.8",
        load_manager="",
        persistent=True,
        non_persistent=True,
        topics=int(made.counts[0, own].sum()),
        listed=count,
        resources=resources,
        traffic=traffic,
        smoothed=np.concatenate((resources, traffic)),
        names="\n".join(made.bundles[own]),
        shown=np.ones(count, np.bool_),
        samples=np.full(count, 1000),
        news=np.zeros(count, np.bool_),
        stats=stats,
        short=stats,
        long=made.long[:, own],
        counts=made.counts[:, own],
    )


def holdings(made: Columns) -> Holdings:
    """Every bundle owned by record by the broker that reports it."""
    owners = zip(made.bundles, made.owner.tolist(), strict=True)
    return Holdings(
        {
            bundle: Record(state=State.OWNED, epoch=Epoch(1, 1), owner=made.brokers[row])
            for bundle, row in owners
        }
    )
