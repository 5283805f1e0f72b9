"""Writes docs/metrics.md from the catalogue: ``python -m admin.documents.metrics``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from admin.documents.tables import row
from trimtab.metrics import agent, api, job, pulsar
from trimtab.metrics.metric import DROPPED, MOST_BROKERS, MOST_SERIES, Metric, MetricKind

DOCUMENT: Final = Path("docs/metrics.md")

_HEAD: Final = f"""# Metrics

<!-- made by python -m admin.documents.metrics from trimtab/metrics -->

Prometheus scrapes three kinds of processes. `deploy/prometheus/prometheus.yml` lists those that
`make demo` starts.

- The job, active or standby: `http://127.0.0.1:9780/metrics` (`metrics_host`, `metrics_port`).
- `trimtab api`: `/metrics` on its own port. With `--tokens` it needs a viewer's token.
- An agent: with the metrics of the broker that embeds it, if the broker gives `agent.running` an
  `AgentMetrics(registry)`; otherwise the agent exports nothing. `trimtab-agent --metrics-port 9782`
  serves its own metrics.

A metric has at most {MOST_SERIES:,} series, because label values such as a cluster's name come from
the network. A metric with a series for each broker has at most {MOST_BROKERS:,}.
`trimtab_dropped_samples_total` counts the values that these limits hide. With 10,000 brokers a
scrape of the job is 4.2 MB.

The boards in `deploy/grafana/dashboards` use these names (`python -m deploy.dashboards` writes the
boards). So do the alerts in `deploy/alerts/trimtab.yml`; each alert has a page in `runbooks/`.
"""

_PULSAR: Final = """A board made for Pulsar shows these. Each broker's agent exports that broker's
percentages. The job exports what Pulsar's leader exports, with `broker="trimtab-job"`. The series
of Pulsar's lookups and of its ownership channel (`pulsar_lb_assign_*`, `pulsar_sunit_state_chn_*`)
have no counterpart: look at `trimtab_moves_total`, `trimtab_repairs_total` and
`trimtab_agent_commands_total` instead.
"""


def write_document() -> str:
    """The whole text."""
    parts = [
        _HEAD,
        *_part("Every process", (DROPPED,)),
        *_part("The job", job.METRICS),
        *_part("The agents", agent.METRICS),
        *_part("The API", api.METRICS),
        *_part("Under Pulsar's names", pulsar.NAMED, _PULSAR),
    ]
    return "\n".join(parts)


def _part(title: str, metrics: Iterable[Metric], said: str = "") -> Iterator[str]:
    yield f"## {title}\n"
    if said:
        yield said
    yield "| name | kind | labels | meaning |\n|---|---|---|---|"
    yield from map(_row, metrics)
    yield ""


def _row(metric: Metric) -> str:
    labels = ", ".join(f"`{label}`" for label in metric.labels)
    kind = metric.kind.value
    if metric.kind is MetricKind.HISTOGRAM:
        kind = f"histogram, {metric.buckets[0]:g} to {metric.buckets[-1]:g}"
    return row(f"`{metric.exposed}`", kind, labels, metric.help)


if __name__ == "__main__":
    DOCUMENT.write_text(write_document(), "utf-8")
