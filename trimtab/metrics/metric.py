"""What a metric is: a family of time series, its unit in its name, its labels bounded."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

MOST_SERIES: Final = 2_000
"""Series of one metric. Label values such as a cluster's name come from
the network: without a limit those who may write to Kafka fill the memory of Prometheus."""

MOST_BROKERS: Final = 20_000
"""Series of a metric that has one for each broker: twice the largest fleet tried."""


class MetricKind(StrEnum):
    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class Metric:
    """One time series family; a counter's exposed name ends in ``_total``."""

    name: str
    kind: MetricKind
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()
    by_broker: bool = False
    """Whether it is a gauge that is set for all brokers of a cluster at once; its first labels are
    ``cluster`` and ``broker``."""

    @property
    def most(self) -> int:
        """How many series the metric may have. Further ones are counted in `DROPPED`, not shown."""
        return MOST_BROKERS if self.by_broker else MOST_SERIES

    @property
    def exposed(self) -> str:
        """The name in queries; a histogram's series add ``_bucket``, ``_sum`` and ``_count``."""
        return f"{self.name}_total" if self.kind is MetricKind.COUNTER else self.name


DROPPED: Final = Metric(
    "trimtab_dropped_samples",
    MetricKind.COUNTER,
    "Values that are not shown because their metric has reached its limit of series, by metric: "
    "there are too many different label values, such as clusters.",
    ("metric",),
)
