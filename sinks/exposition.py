"""A catalogue's metrics as live prometheus-client metrics, each with a limit of series."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, TypeVar
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, ThreadingWSGIServer
from prometheus_client.registry import Collector

from sinks.broker_gauges import BrokerGauges
from trimtab.metrics import job, pulsar
from trimtab.metrics.metric import DROPPED, Metric, MetricKind

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIEnvironment

T = TypeVar("T", Counter, Gauge, Histogram)


class PortTaken(RuntimeError):
    """The metrics cannot be served on the configured host and port."""


class Exposition:
    """Every metric of a catalogue (by default the job's), in a registry of its own unless one is
    given. Any number of threads may use it."""

    def __init__(
        self,
        catalogue: Iterable[Metric] = (*job.METRICS, *pulsar.OF_JOB),
        registry: CollectorRegistry | None = None,
    ) -> None:
        self.registry = registry or CollectorRegistry()
        known = dict.fromkeys((*catalogue, DROPPED))
        self._few = CollectorRegistry()
        """All but those by broker, which `text` writes itself."""
        self._brokers = BrokerGauges(metric for metric in known if metric.by_broker)
        self._live = {m: _create(m, self._few) for m in known if not m.by_broker}
        self._series: dict[Metric, set[tuple[str, ...]]] = {metric: set() for metric in self._live}
        for collector in (self._few, self._brokers):
            self.registry.register(collector)

    def add(self, collector: Collector) -> None:
        """Show what this collector reads at each scrape, too."""
        self._few.register(collector)

    def count(self, metric: Metric, *labels: str, by: float = 1) -> None:
        if live := self._child(metric, Counter, labels):
            live.inc(by)

    def set(self, metric: Metric, value: float, *labels: str) -> None:
        if live := self._child(metric, Gauge, labels):
            live.set(value)

    def set_brokers(
        self, metric: Metric, cluster: str, values: Mapping[str, float], *labels: str
    ) -> None:
        """Show these brokers of a cluster, and no others of it; ``labels``: the metric's other
        ones. ``values`` must not change afterwards."""
        if dropped := self._brokers.set(metric, cluster, values, labels):
            self.count(DROPPED, metric.exposed, by=dropped)

    def observe(self, metric: Metric, value: float, *labels: str) -> None:
        if live := self._child(metric, Histogram, labels):
            live.observe(value)

    def begin(self, metric: Metric, *labels: str) -> None:
        """Show a histogram before its first observation: to Prometheus, a series that is new has
        not increased."""
        self._child(metric, Histogram, labels)

    def timed(self, metric: Metric, *labels: str) -> AbstractContextManager[object]:
        """Observe how long the block takes, whether it succeeds or not."""
        live = self._child(metric, Histogram, labels)
        return live.time() if live else nullcontext()

    def forget(self, metric: Metric, *labels: str) -> None:
        """Drop the series whose first labels are these: what ended has no value."""
        self._live[metric].remove_by_labels(dict(zip(metric.labels, labels, strict=False)))
        self._series[metric] = {
            each for each in self._series[metric] if each[: len(labels)] != labels
        }

    def _child(self, metric: Metric, kind: type[T], labels: tuple[str, ...]) -> T | None:
        """The series with these labels; None if the metric already has as many as it may have."""
        live = self._live[metric]
        if not isinstance(live, kind):
            raise TypeError(f"{metric.name} is a {metric.kind}")
        if not metric.labels:
            return live
        known = self._series[metric]
        if labels not in known:
            if len(known) >= metric.most:
                self.count(DROPPED, metric.exposed)
                return None
            known.add(labels)
        return live.labels(*labels)

    def text(self) -> bytes:
        """The answer to a scrape, in Prometheus' text format."""
        return generate_latest(self._few) + self._brokers.text()

    def serve(self, host: str, port: int) -> WSGIServer:
        """Serve ``/metrics`` on its own thread; the returned server knows its port.

        Raises PortTaken.
        """
        try:
            server = make_server(host, port, self._answer, ThreadingWSGIServer, _Quiet)
        except OSError as error:
            raise PortTaken(
                f"metrics cannot be served on {host}:{port} ({error.strerror}): choose another "
                "metrics_port, or 0 for any"
            ) from error
        threading.Thread(target=server.serve_forever, name="metrics", daemon=True).start()
        return server

    def _answer(self, _: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        # Not compressed: for ten thousand brokers that takes longer than all the rest.
        start("200 OK", [("Content-Type", CONTENT_TYPE_PLAIN_0_0_4)])
        return [self.text()]


class _Quiet(WSGIRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Write no line for each scrape."""


def _create(metric: Metric, registry: CollectorRegistry) -> Counter | Gauge | Histogram:
    if metric.kind is MetricKind.HISTOGRAM:
        return Histogram(
            metric.name, metric.help, metric.labels, registry=registry, buckets=metric.buckets
        )
    kind = Counter if metric.kind is MetricKind.COUNTER else Gauge
    return kind(metric.name, metric.help, metric.labels, registry=registry)
