"""The metrics catalogue as live prometheus-client metrics, served by the driver."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TypeVar
from wsgiref.simple_server import WSGIServer

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, start_http_server

from trimtab.metrics import CATALOGUE, Metric, MetricKind

T = TypeVar("T")


class PortTaken(RuntimeError):
    """The metrics cannot be served on the configured host and port."""


class Exposition:
    """Every metric of the catalogue, in a registry of its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._live = {metric: _create(metric, self.registry) for metric in CATALOGUE}

    def count(self, metric: Metric, *labels: str, by: float = 1) -> None:
        live = self._of(metric, Counter)
        (live.labels(*labels) if labels else live).inc(by)

    def set(self, metric: Metric, value: float, *labels: str) -> None:
        live = self._of(metric, Gauge)
        (live.labels(*labels) if labels else live).set(value)

    def observe(self, metric: Metric, value: float, *labels: str) -> None:
        live = self._of(metric, Histogram)
        (live.labels(*labels) if labels else live).observe(value)

    def timed(self, metric: Metric, *labels: str) -> AbstractContextManager[object]:
        """Observe how long the block takes, whether it succeeds or not."""
        live = self._of(metric, Histogram)
        return (live.labels(*labels) if labels else live).time()

    def forget(self, metric: Metric, *labels: str) -> None:
        """Drop the series whose first labels are these: a broker that left has no usage."""
        self._live[metric].remove_by_labels(dict(zip(metric.labels, labels, strict=False)))

    def _of(self, metric: Metric, kind: type[T]) -> T:
        live = self._live[metric]
        if not isinstance(live, kind):
            raise TypeError(f"{metric.name} is a {metric.kind}")
        return live

    def serve(self, host: str, port: int) -> WSGIServer:
        """Serve ``/metrics`` on its own thread; the returned server knows its port.

        Raises PortTaken.
        """
        try:
            server, _ = start_http_server(port, host, self.registry)
        except OSError as error:
            raise PortTaken(
                f"metrics cannot be served on {host}:{port} ({error.strerror}): choose another "
                "metrics_port, or 0 for any"
            ) from error
        return server


def _create(metric: Metric, registry: CollectorRegistry) -> Counter | Gauge | Histogram:
    if metric.kind is MetricKind.HISTOGRAM:
        return Histogram(
            metric.name, metric.help, metric.labels, registry=registry, buckets=metric.buckets
        )
    kind = Counter if metric.kind is MetricKind.COUNTER else Gauge
    return kind(metric.name, metric.help, metric.labels, registry=registry)
