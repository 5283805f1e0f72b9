"""The catalogue of metrics: name, unit, help and labels of all that trimtab's processes export.

One module for each process that exports some, and one for the names that Pulsar's dashboards use.
The values are set where they are known: `streaming.metrics`, `agent.metrics`, `api.metrics`.
docs/metrics.md is made from it.
"""

from __future__ import annotations

from typing import Final

from trimtab.metrics import agent, api, job, pulsar
from trimtab.metrics.metric import DROPPED, Metric

CATALOGUE: Final[tuple[Metric, ...]] = (
    DROPPED,
    *job.METRICS,
    *agent.METRICS,
    *api.METRICS,
    *pulsar.NAMED,
)
"""Every metric, once."""
