r"""A broker with its agent inside: a topic counts the messages it gets, and stores none.

    python -m agent.example_broker --cluster c --broker 127.0.0.1:7001 \
        --own t/n/0x00000000_0xffffffff
    echo persistent://t/n/topic | nc -N 127.0.0.1 7001

A line is a message to the topic it names; the answer is that topic's count, or whom to ask.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from socketserver import StreamRequestHandler, ThreadingTCPServer
from typing import Annotated

import numpy as np
import typer

from agent.agent import AgentSettings
from agent.host import HostSampler
from agent.lookup import Lookup
from agent.running import running, wait_for_the_end
from agent.settling import LookupSettings
from sinks.connections import redis_client
from trimtab.model import FULL_RANGE_END, parse_bundle
from trimtab.ring import position
from trimtab.wire.load_report import BundleStats, LocalBrokerData
from trimtab.wire.lookup import Answer


class ExampleBroker:
    """Implements `agent.broker.Broker`. Counting locks, so after an unload nothing is counted."""

    def __init__(self, own: Sequence[str]) -> None:
        self.started_ms = time.time_ns() // 1_000_000
        self._loaded, self._counts = frozenset(own), Counter[str]()
        self._told, self._told_at = Counter[str](), time.monotonic()
        self._lock, self._host = threading.Lock(), HostSampler()

    def bundles(self) -> frozenset[str]:
        return self._loaded

    def load_report(self) -> LocalBrokerData:
        with self._lock:
            now, counts = time.monotonic(), self._counts.copy()
        news, elapsed = counts - self._told, now - self._told_at
        self._told, self._told_at = counts, now
        rates = {b: sum(news[t] for t in news if holds(b, t)) / elapsed for b in self._loaded}
        return LocalBrokerData(
            **self._host.sample()._asdict(),
            msg_rate_in=sum(rates.values()),
            last_stats={bundle: BundleStats(msg_rate_in=rates[bundle]) for bundle in rates},
            bundles=list(rates),
            num_bundles=len(rates),
            start_timestamp=self.started_ms,
        )

    def prepare(self, bundle: str) -> None:
        """Nothing to warm."""

    def load(self, bundle: str) -> None:
        self._loaded |= {bundle}

    def unload(self, bundle: str) -> None:
        self._loaded -= {bundle}
        with self._lock:
            for topic in [topic for topic in self._counts if holds(bundle, topic)]:
                del self._counts[topic]

    def topics(self, bundle: str) -> dict[int, tuple[float, ...]]:
        with self._lock:
            return {position(t): (0.0, 0.0, 0.0, 0.0) for t in self._counts if holds(bundle, t)}

    def split(self, bundle: str, children: Sequence[str]) -> None:
        self._loaded = (self._loaded - {bundle}) | set(children)

    def count(self, topic: str, serves: Callable[[str], bool]) -> int:
        """How many messages a topic has had, with this one; 0 where it is not served here."""
        with self._lock:
            if not any(serves(bundle) for bundle in self._loaded if holds(bundle, topic)):
                return 0
            self._counts[topic] += 1
            return self._counts[topic]


def holds(bundle: str, topic: str) -> bool:
    namespace, (low, high) = parse_bundle(bundle)
    where = min(position(topic), FULL_RANGE_END - 1)  # The end of the ring is the last one's.
    return topic.startswith(f"persistent://{namespace}/") and low <= where < high


def told(answer: Answer) -> str:
    return f"{answer.kind.value} {answer.broker or answer.says}"


class Server(ThreadingTCPServer):
    daemon_threads = allow_reuse_address = True


def run(
    cluster: Annotated[str, typer.Option(help="Cluster the broker belongs to.")],
    broker: Annotated[str, typer.Option(help="Its id and where it serves, host:port.")],
    own: Annotated[list[str] | None, typer.Option(help="A bundle to start with.")] = None,
    kafka: Annotated[str, typer.Option(help="Bootstrap servers.")] = "127.0.0.1:9092",
    redis: Annotated[str, typer.Option(help="A URL.")] = "redis://127.0.0.1:6379/0",
) -> None:
    """Serve until SIGTERM or Ctrl-C."""
    mine = ExampleBroker(own or ())
    lookup = Lookup(LookupSettings(cluster, broker), redis_client(redis), np.random.default_rng())

    class Lines(StreamRequestHandler):
        def handle(self) -> None:
            for topic in (line.decode().strip() for line in self.rfile):
                answer = mine.count(topic, agent.serves) or told(lookup.lookup(topic))
                self.wfile.write(f"{answer}\n".encode())

    host, _, port = broker.rpartition(":")
    settings = AgentSettings(cluster, broker, mine.started_ms)
    with running(mine, settings, kafka, redis) as agent, Server((host, int(port)), Lines) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        wait_for_the_end(agent)
        server.shutdown()


if __name__ == "__main__":
    typer.run(run)
