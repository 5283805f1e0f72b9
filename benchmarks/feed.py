"""A fleet that only reports: ``python -m benchmarks.feed BOOTSTRAP CLUSTERS BROKERS EVERY_S``.

Each broker of each cluster sends a report in every interval until the process is ended, one broker
after another and evenly. Reports are made before the first is sent, and sent in turn: making ten
thousand in ten seconds would cost more than the job's work on them.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from typing import Final

from confluent_kafka import Producer

from benchmarks.synthetic import Columns, columns
from trimtab.wire import keys
from trimtab.wire.load_report import BundleStats, LocalBrokerData, Resource, encode

BUNDLES: Final = 100
"""Of each broker."""
VARIANTS: Final = 2
"""Reports made for a broker: one after another, each is news."""


def feed(bootstrap: str, clusters: int, brokers: int, every_s: float) -> None:
    """Send until the process is ended."""
    made = [list(_reports(brokers, seed)) for seed in range(VARIANTS)]
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20})
    session = str(time.time_ns() // 1_000_000).encode()
    began, sent = time.monotonic(), 0
    while True:
        turn, place = divmod(sent, clusters * brokers)
        cluster, row = divmod(place, brokers)
        broker, value = made[turn % VARIANTS][row]
        due_s = began + every_s * sent / (clusters * brokers)
        producer.poll(max(0.0, due_s - time.monotonic()))
        headers: list[tuple[str, str | bytes | None]] = [
            (keys.SESSION_HEADER, session),
            (keys.SEQUENCE_HEADER, str(turn + 1).encode()),
        ]
        try:
            producer.produce(
                keys.LOAD_REPORTS, value, f"bench-{cluster}/{broker}".encode(), headers=headers
            )
        except BufferError:
            producer.poll(0.1)
        else:
            sent += 1


def _reports(brokers: int, seed: int) -> Iterator[tuple[str, bytes]]:
    made = columns(brokers, BUNDLES, seed)
    for row, broker in enumerate(made.brokers):
        yield broker, encode(_report(made, row, slice(row * BUNDLES, (row + 1) * BUNDLES)))


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
    feed(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]))
