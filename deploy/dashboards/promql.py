"""PromQL over the catalogue's metrics: a name that does not exist fails type checking."""

from __future__ import annotations

from typing import Final

from trimtab.metrics.metric import Metric, MetricKind

_OF_CLUSTER: Final = 'cluster=~"$cluster"'
WINDOW: Final = "[$__rate_interval]"


def now(metric: Metric, *matchers: str) -> str:
    """The selector of a metric's series, those of the board's cluster if it has that label."""
    of = (_OF_CLUSTER, *matchers) if "cluster" in metric.labels else matchers
    return metric.exposed + (f"{{{','.join(of)}}}" if of else "")


def rate(metric: Metric, *by: str, matchers: tuple[str, ...] = ()) -> str:
    """Events a second, summed by these labels."""
    return f"{_sum(by)}(rate({now(metric, *matchers)}{WINDOW}))"


def increase(metric: Metric, *by: str) -> str:
    """Events of the last hour, summed by these labels."""
    return f"{_sum(by)}(increase({now(metric)}[1h]))"


def buckets(metric: Metric, *by: str) -> str:
    """A histogram's buckets, observations a second."""
    return f"{_sum(('le', *by))}(rate({_part(metric, 'bucket')}{WINDOW}))"


def quantile(share: float, metric: Metric, *by: str) -> str:
    """A quantile of a histogram."""
    return f"histogram_quantile({share:g}, {buckets(metric, *by)})"


def mean(metric: Metric, *by: str) -> str:
    """The mean of what a histogram observed."""
    total, number = (
        f"{_sum(by)}(rate({_part(metric, part)}{WINDOW}))" for part in ("sum", "count")
    )
    return f"{total} / {number}"


def top(number: int, expr: str) -> str:
    """Only the highest series."""
    return f"topk({number}, {expr})"


def _part(metric: Metric, part: str) -> str:
    assert metric.kind is MetricKind.HISTOGRAM, metric.name
    whole = now(metric)
    return whole.replace(metric.exposed, f"{metric.exposed}_{part}", 1)


def _sum(by: tuple[str, ...]) -> str:
    return f"sum by ({', '.join(by)}) " if by else "sum"
