"""The metrics of `trimtab api`."""

from __future__ import annotations

from typing import Final

from trimtab.metrics.metric import Metric, MetricKind

REQUESTS: Final = Metric(
    "trimtab_api_requests",
    MetricKind.COUNTER,
    "Requests answered, by method, path template, HTTP status and the caller's role. All paths "
    "that the API does not have count as other.",
    ("method", "path", "status", "role"),
)
REQUEST_SECONDS: Final = Metric(
    "trimtab_api_request_seconds",
    MetricKind.HISTOGRAM,
    "Time to answer a request. For a request that waits for an intent it includes that wait.",
    ("method", "path"),
    (0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0, 30.0, 60.0),
)
INTENTS: Final = Metric(
    "trimtab_api_intents",
    MetricKind.COUNTER,
    "Intents made from requests, by kind. trimtab_intent_outcomes_total has their outcomes.",
    ("kind",),
)

METRICS: Final = tuple(value for value in globals().values() if isinstance(value, Metric))
"""All of them."""
