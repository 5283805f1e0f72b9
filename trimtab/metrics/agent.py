"""The metrics of the agents. A broker exports its agent's only if it asks for them."""

from __future__ import annotations

from typing import Final

from trimtab.metrics.metric import Metric, MetricKind

_EACH: Final = ("cluster", "broker")

LEASE: Final = Metric(
    "trimtab_agent_lease_remaining_seconds",
    MetricKind.GAUGE,
    "For how long this broker may serve if it does not renew its lease, by its own clock; 0 while "
    "it may not serve.",
    _EACH,
)
LAPSES: Final = Metric(
    "trimtab_agent_lease_lapses",
    MetricKind.COUNTER,
    "Times the broker stopped serving everything because its lease had a gap. It is 1 after a "
    "start, because a broker starts without a lease.",
    _EACH,
)
SEEDED: Final = Metric(
    "trimtab_agent_seeded",
    MetricKind.GAUGE,
    "1 while this broker and the ownership store agree on everything that it owns.",
    _EACH,
)
SERVED: Final = Metric(
    "trimtab_agent_served_bundles",
    MetricKind.GAUGE,
    "Bundles that this broker may serve now; 0 without a lease.",
    _EACH,
)
COMMANDS: Final = Metric(
    "trimtab_agent_commands",
    MetricKind.COUNTER,
    "Commands handled, by kind and outcome: done, refused (the store did not accept the broker's "
    "report), stale (the command came late or twice), declined (the bundle cannot be loaded).",
    (*_EACH, "kind", "outcome"),
)
MIGRATION_STEPS: Final = Metric(
    "trimtab_agent_migration_steps",
    MetricKind.COUNTER,
    "Steps that this broker tried for migrating topics, by result (done, failed) and step: begin "
    "(create the topic on the other cluster, end it here), catch-up (end it here once other "
    "regions lack nothing), drain (redirect consumers), release (let producers in again), "
    "take-back (ask the other cluster to give it back).",
    (*_EACH, "step", "result"),
)
HANDOVER: Final = Metric(
    "trimtab_agent_handover_seconds",
    MetricKind.HISTOGRAM,
    "Time from the record that gives a bundle to this broker until this broker serves it, by "
    "Redis's clock. No broker serves the bundle in between.",
    ("cluster",),
    (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0),
)
REPORT_AGE: Final = Metric(
    "trimtab_agent_report_age_seconds",
    MetricKind.GAUGE,
    "Time since the agent last measured the load for a report.",
    _EACH,
)
REPORTS: Final = Metric(
    "trimtab_agent_reports",
    MetricKind.COUNTER,
    "Load reports of this process, by outcome: delivered, superseded (replaced by a newer report "
    "before it was sent), failed.",
    ("outcome",),
)

METRICS: Final = tuple(value for value in globals().values() if isinstance(value, Metric))
"""All of them."""
