"""Gauges with one series for each broker: prometheus-client needs a second for ten thousand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Final, NamedTuple

from prometheus_client.metrics_core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from trimtab.metrics.metric import Metric

_ESCAPED: Final = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


class _Rows(NamedTuple):
    """A cluster's values by broker, and the labels that all of them have besides."""

    values: Mapping[str, float]
    labels: tuple[str, ...]


class BrokerGauges(Collector):
    """Set a cluster at a time, and written without a copy; values are finite."""

    def __init__(self, metrics: Iterable[Metric]) -> None:
        self._rows: dict[Metric, dict[str, _Rows]] = {metric: {} for metric in metrics}

    def set(
        self, metric: Metric, cluster: str, values: Mapping[str, float], labels: tuple[str, ...]
    ) -> int:
        """Replace a cluster's values; returns how many are too many to be shown."""
        of = self._rows[metric]
        others = sum(len(rows.values) for name, rows in of.items() if name != cluster)
        room = max(0, metric.most - others)
        shown = values if len(values) <= room else dict(islice(values.items(), room))
        # Replaced as a whole, as a scrape may be reading; without brokers, a cluster takes no room.
        rest = {name: rows for name, rows in of.items() if name != cluster}
        self._rows[metric] = rest | ({cluster: _Rows(shown, labels)} if shown else {})
        return len(values) - len(shown)

    def collect(self) -> Iterable[Family]:
        """The gauges for prometheus-client, for the registry of a process that embeds the agent."""
        for metric, clusters in self._rows.items():
            family = GaugeMetricFamily(metric.name, metric.help, labels=metric.labels)
            for cluster, rows in clusters.items():
                for broker, value in rows.values.items():
                    family.add_metric((cluster, broker, *rows.labels), value)
            yield family

    def text(self) -> bytes:
        """All gauges in Prometheus' text format."""
        lines = [line for metric in self._rows for line in self._lines(metric)]
        return "".join(lines).encode()

    def _lines(self, metric: Metric) -> Iterator[str]:
        yield f"# HELP {metric.name} {metric.help}\n# TYPE {metric.name} gauge\n"
        for cluster, rows in self._rows[metric].items():
            before = f'{metric.name}{{cluster="{cluster.translate(_ESCAPED)}",broker="'
            named = zip(metric.labels[2:], rows.labels, strict=True)
            after = "".join(f',{name}="{value.translate(_ESCAPED)}"' for name, value in named)
            for broker, value in rows.values.items():
                yield f'{before}{broker.translate(_ESCAPED)}"{after}}} {value!r}\n'
