"""A broker with its agent inside: a topic counts its messages, and stores none. A line is a message
to the topic it names; the answer is its count, or which broker to ask. docs/agent.md starts one."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from socketserver import StreamRequestHandler, ThreadingTCPServer

import numpy as np
import typer

from agent.lookup.server import Lookup
from agent.lookup.settling import LookupSettings
from agent.reports.host import HostSampler
from agent.running import running, wait_for_the_end
from agent.settings import AgentSettings
from sinks.redis.server.connections import redis_client
from trimtab.model import parse_bundle
from trimtab.store.ring import clamped_position, position
from trimtab.wire.reports.load_report import BundleStats, LocalBrokerData


class ExampleBroker:
    """Implements `agent.broker.Broker`. Counting locks, so after an unload nothing is counted."""

    def __init__(self, own: Sequence[str]) -> None:
        self.started_ms, self._host = time.time_ns() // 1_000_000, HostSampler()
        self._loaded, self._counts, self._lock = frozenset(own), Counter[str](), threading.Lock()

    def bundles(self) -> frozenset[str]:
        return self._loaded

    def load_report(self) -> LocalBrokerData:
        with self._lock:
            counts = self._counts.copy()
        seconds = 0.001 + time.time() - self.started_ms / 1000
        rates = {b: sum(counts[t] for t in counts if holds(b, t)) / seconds for b in self._loaded}
        report = LocalBrokerData(**self._host.sample()._asdict(), bundles=list(rates))
        report.last_stats = {bundle: BundleStats(msg_rate_in=rates[bundle]) for bundle in rates}
        report.msg_rate_in, report.start_timestamp = sum(rates.values()), self.started_ms
        return report

    def prepare(self, bundle: str) -> None: ...

    def load(self, bundle: str) -> None:
        self._loaded |= {bundle}

    def unload(self, bundle: str) -> None:
        self._loaded -= {bundle}
        with self._lock:
            self._counts -= Counter({t: n for t, n in self._counts.items() if holds(bundle, t)})

    def topics(self, bundle: str) -> dict[int, tuple[float, ...]]:
        with self._lock:
            return {position(t): (0.0, 0.0, 0.0, 0.0) for t in self._counts if holds(bundle, t)}

    def split(self, bundle: str, children: Sequence[str]) -> None:
        self._loaded = (self._loaded - {bundle}) | set(children)

    def merge(self, parts: Sequence[str], whole: str) -> None:
        self._loaded = (self._loaded - set(parts)) | {whole}

    def count(self, topic: str, serves: Callable[[str], bool]) -> int:
        """How many messages a topic has had, with this one; 0 if it is not served here."""
        with self._lock:
            served = any(serves(bundle) for bundle in self._loaded if holds(bundle, topic))
            self._counts.update([topic] if served else [])
            return self._counts[topic] if served else 0


def holds(bundle: str, topic: str) -> bool:
    namespace, (low, high) = parse_bundle(bundle)
    return topic.startswith(f"persistent://{namespace}/") and low <= clamped_position(topic) < high


def run(cluster: str, broker: str, kafka: str, redis: str, own: list[str] | None = None) -> None:
    """Serve until SIGTERM or Ctrl-C; ``own`` are the initial bundles."""
    mine, client = ExampleBroker(own or ()), redis_client(redis)
    lookup = Lookup(LookupSettings(cluster, broker), client, np.random.default_rng()).lookup

    class Lines(StreamRequestHandler):
        def handle(self) -> None:
            for topic in (line.decode().strip() for line in self.rfile):
                said = mine.count(topic, agent.serves) or lookup(topic).broker or "nobody"
                self.wfile.write(f"{said}\n".encode())

    with running(mine, AgentSettings(cluster, broker, mine.started_ms), kafka, redis) as agent:
        server = ThreadingTCPServer((broker.split(":")[0], int(broker.split(":")[1])), Lines)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        wait_for_the_end(agent)


if __name__ == "__main__":
    typer.run(run)
