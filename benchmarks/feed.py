"""A fleet that only reports: ``python -m benchmarks.feed``.

Arguments: Kafka's address, the checkpoint, clusters, brokers of each, seconds between reports, and
whether all brokers carry the same (1 or 0).
Each broker of each cluster sends a report in every interval until the process is ended, one broker
after another and evenly. Reports are made before the first is sent, and sent in turn: making ten
thousand in ten seconds would cost more than the job's work on them. Where the job falls behind by
more than two reports of each broker, the feed waits for it: what piles up beyond would only fill
the disk. By one it may fall behind during a round.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
from confluent_kafka import Producer

from benchmarks.synthetic import NOW_MS, RANGES, Columns, columns
from sinks.kafka.publisher import Outgoing
from trimtab.model import Epoch
from trimtab.ownership import Event, State
from trimtab.wire import keys
from trimtab.wire.ownership import Change, Record
from trimtab.wire.reports.load_report import BundleStats, LocalBrokerData, Resource, encode

BUNDLES: Final = 100
"""Bundles of each broker."""
_DEFAULT_RANGES: Final = 4
"""Bundles of a namespace, unless an operator asks for others (Pulsar's
``defaultNumberOfNamespaceBundles``)."""
VARIANTS: Final = 2
"""Reports made for a broker: one after another, each is news."""
_PARTS_A_SECOND: Final = 20


def feed(  # noqa: PLR0913 - the arguments of a process
    bootstrap: str, checkpoint: Path, clusters: int, brokers: int, every_s: float, *, even: bool
) -> None:
    """Send until the process is ended."""
    made = [list(reports(brokers, seed, even=even)) for seed in range(VARIANTS)]
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20})
    session = str(time.time_ns() // 1_000_000).encode()
    turn_size = clusters * brokers
    pause_s = _PARTS_A_SECOND**-1
    due_s, sent = time.monotonic(), 0
    while True:
        if sent - taken(checkpoint) > 2 * turn_size:
            producer.poll(0)
            time.sleep(pause_s)
            due_s = time.monotonic()
            continue
        # A part at a time: what the job has taken is read from a file.
        for _ in range(max(1, round(turn_size / every_s * pause_s))):
            turn, place = divmod(sent, turn_size)
            cluster, row = divmod(place, brokers)
            broker, value = made[turn % VARIANTS][row]
            headers: list[tuple[str, str | bytes | None]] = [
                (keys.SESSION_HEADER, session),
                (keys.SEQUENCE_HEADER, str(turn + 1).encode()),
            ]
            key = f"{cluster_name(cluster)}/{broker}".encode()
            producer.produce(keys.LOAD_REPORTS, value, key, headers=headers)
            sent += 1
            due_s += every_s / turn_size
        producer.poll(0)
        time.sleep(max(0.0, due_s - time.monotonic()))


def cluster_name(number: int) -> str:
    """The name of a cluster of the fleet."""
    return f"bench-{number}"


def taken(checkpoint: Path, topic: str = keys.LOAD_REPORTS) -> int:
    """How many records of a topic the job's newest batch ends at, by its offsets on disk."""
    numbers = [int(each.name) for each in (checkpoint / "offsets").glob("[0-9]*")]
    if not numbers:
        return 0
    lines = (checkpoint / "offsets" / str(max(numbers))).read_text().splitlines()
    sources = [msgspec.json.decode(line, type=dict[str, Any]) for line in lines if "{" in line]
    found = (source[topic] for source in sources if topic in source)
    return sum(sum(partitions.values()) for partitions in found)


def reports(brokers: int, seed: int, *, even: bool = False) -> Iterator[tuple[str, bytes]]:
    """A report of each broker. Those of two seeds have the same bundles, with other figures."""
    made = _fleet(brokers, seed, even=even)
    for row, broker in enumerate(made.brokers):
        yield broker, encode(_report(made, row, slice(row * BUNDLES, (row + 1) * BUNDLES)))


def records(cluster: str, brokers: int) -> Iterator[Outgoing]:
    """The journal's records of the bundles in `reports` of an even fleet: each is owned by the
    broker that reports it."""
    made = _fleet(brokers, 0, even=True)
    for row, bundle in enumerate(made.bundles):
        owned = Record(
            state=State.OWNED,
            epoch=Epoch(1, row + 1),
            owner=made.brokers[row // BUNDLES],
            since=NOW_MS,
        )
        change = Change(cluster=cluster, bundle=bundle, event=Event.CLAIM, record=owned)
        yield Outgoing(keys.OWNERSHIP, f"{cluster}/{bundle}", msgspec.json.encode(change))


def _fleet(brokers: int, seed: int, *, even: bool = False) -> Columns:
    """Bundles of a namespace are on brokers drawn at random, as rebalancing leaves them. An even
    fleet has many small namespaces."""
    ranges = _DEFAULT_RANGES if even else RANGES
    made = columns(brokers, BUNDLES, seed, even=even, ranges=ranges)
    drawn = np.random.default_rng(0).permutation(len(made.bundles)).tolist()
    return replace(made, bundles=tuple(made.bundles[place] for place in drawn))


def _report(made: Columns, row: int, own: slice) -> LocalBrokerData:
    parts = (made.bundles[own], made.stats[:, own].T.tolist(), made.counts[:, own].T.tolist())
    used, limits = made.used[:, row].tolist(), made.limit[:, row].tolist()
    cpu, memory, direct, receiving, sending = map(Resource, used, limits)
    rate_in, rate_out, bytes_in, bytes_out = made.stats[:, own].sum(axis=1).tolist()
    return LocalBrokerData(
        cpu=cpu,
        memory=memory,
        direct_memory=direct,
        bandwidth_in=receiving,
        bandwidth_out=sending,
        msg_rate_in=rate_in,
        msg_rate_out=rate_out,
        msg_throughput_in=bytes_in,
        msg_throughput_out=bytes_out,
        last_stats={
            name: BundleStats(*rates, *counts) for name, rates, counts in zip(*parts, strict=True)
        },
        bundles=list(made.bundles[own]),
        num_topics=int(made.counts[0, own].sum()),
        num_bundles=BUNDLES,
        start_timestamp=1,
        broker_version_string="4.0.8",
    )


if __name__ == "__main__":
    bootstrap, checkpoint, clusters, brokers, every_s, even = sys.argv[1:]
    where = bootstrap, Path(checkpoint)
    feed(*where, int(clusters), int(brokers), float(every_s), even=even == "1")
