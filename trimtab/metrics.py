"""The catalogue of metrics: every name that dashboards, alerts and code may use.

Labels stay few: clusters, brokers and closed sets of reasons, never a tenant, a topic or a bundle.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


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


_SECONDS: Final = (0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 2.0, 5.0, 10.0, 30.0)

# Intake
REPORTS: Final = Metric(
    "trimtab_reports",
    MetricKind.COUNTER,
    "Load reports by what became of them: accepted, duplicate, old.",
    ("cluster", "verdict"),
)
DEAD_LETTERS: Final = Metric(
    "trimtab_dead_letters",
    MetricKind.COUNTER,
    "Rejected records by topic and reason.",
    ("topic", "reason"),
)
IMPLAUSIBLE: Final = Metric(
    "trimtab_implausible_reports",
    MetricKind.COUNTER,
    "Load reports rejected for a figure that no hardware has, by the report's member. The broker's "
    "last believed report stands until it counts as silent; the log names the broker.",
    ("cluster", "kind"),
)
REPORT_AGE: Final = Metric(
    "trimtab_newest_report_age_seconds",
    MetricKind.GAUGE,
    "From Kafka's append time of a cluster's newest report to the batch that took it.",
    ("cluster",),
)

# Batches
BATCHES: Final = Metric("trimtab_batches", MetricKind.COUNTER, "Batches finished.")
BATCH_SECONDS: Final = Metric(
    "trimtab_batch_seconds", MetricKind.HISTOGRAM, "Length of a batch.", buckets=_SECONDS
)
BATCH_STAGE: Final = Metric(
    "trimtab_batch_stage_seconds",
    MetricKind.GAUGE,
    "Spark's own split of the last batch.",
    ("stage",),
)
INPUT_ROWS: Final = Metric(
    "trimtab_input_rows", MetricKind.COUNTER, "Kafka records read.", ("topic",)
)
LAG: Final = Metric(
    "trimtab_lag_records", MetricKind.GAUGE, "Records in Kafka beyond the last batch.", ("topic",)
)
STATE_ROWS: Final = Metric("trimtab_state_rows", MetricKind.GAUGE, "Keys in state.", ("operator",))
STATE_BYTES: Final = Metric(
    "trimtab_state_bytes", MetricKind.GAUGE, "Memory used by state.", ("operator",)
)
LAST_PROGRESS: Final = Metric(
    "trimtab_last_batch_timestamp_seconds",
    MetricKind.GAUGE,
    "When the last batch ended (Unix time).",
)
QUERY_RESTARTS: Final = Metric(
    "trimtab_query_restarts", MetricKind.COUNTER, "Times the query failed and was started again."
)

# Decisions
ROUNDS: Final = Metric(
    "trimtab_rounds",
    MetricKind.COUNTER,
    "Rounds by outcome: planned, or the rule for which none was.",
    ("cluster", "outcome"),
)
DECISIONS: Final = Metric(
    "trimtab_decisions",
    MetricKind.COUNTER,
    "Moves decided, by the strategy's reason.",
    ("cluster", "reason"),
)
REFUSALS: Final = Metric(
    "trimtab_refusals",
    MetricKind.COUNTER,
    "Moves wished for and not granted, by the rule that bound.",
    ("cluster", "rule"),
)
MOVES: Final = Metric(
    "trimtab_moves",
    MetricKind.COUNTER,
    "Moves written to the ownership store: accepted, or refused with its reason.",
    ("cluster", "outcome"),
)
SPLITS: Final = Metric(
    "trimtab_splits",
    MetricKind.COUNTER,
    "Divisions written to the ownership store: accepted, or refused with its reason.",
    ("cluster", "outcome"),
)
MERGES: Final = Metric(
    "trimtab_merges",
    MetricKind.COUNTER,
    "Merges of two bundles written to the ownership store: accepted, or refused with its reason.",
    ("cluster", "outcome"),
)
REPAIRS: Final = Metric(
    "trimtab_repairs",
    MetricKind.COUNTER,
    "Repairs of ownership written to the store, by event: accepted, or refused with its reason.",
    ("cluster", "event", "outcome"),
)
USAGE: Final = Metric(
    "trimtab_broker_usage_ratio",
    MetricKind.GAUGE,
    "A broker's weighted usage as the strategies see it.",
    ("cluster", "broker"),
)
USAGE_RANGE: Final = Metric(
    "trimtab_usage_range_ratio", MetricKind.GAUGE, "Highest less lowest usage.", ("cluster",)
)
BROKERS: Final = Metric(
    "trimtab_brokers", MetricKind.GAUGE, "Brokers in the last view.", ("cluster",)
)
BUNDLES: Final = Metric(
    "trimtab_bundles", MetricKind.GAUGE, "Bundles in the last view.", ("cluster",)
)
HELD_BACK: Final = Metric(
    "trimtab_held_back_bundles",
    MetricKind.GAUGE,
    "Bundles kept out of the last round, by rule.",
    ("cluster", "rule"),
)
UNSERVED: Final = Metric(
    "trimtab_unserved_bundles",
    MetricKind.GAUGE,
    "Bundles that nobody serves, by the ownership records of the last round.",
    ("cluster",),
)
UNAVAILABLE: Final = Metric(
    "trimtab_unavailable_brokers",
    MetricKind.GAUGE,
    "Brokers that get no bundles, by why: gone, draining, held-back (came back after a loss).",
    ("cluster", "cause"),
)
DOUBT: Final = Metric(
    "trimtab_doubt",
    MetricKind.GAUGE,
    "1 for the present level: stable, jittery (failures only, later), unstable (nothing at all).",
    ("cluster", "level"),
)
PROBLEMS: Final = Metric(
    "trimtab_problems",
    MetricKind.GAUGE,
    "Things an operator must look at: namespaces that do not tile, intents refused.",
    ("cluster",),
)

# What came of moves
PREDICTION_ERROR: Final = Metric(
    "trimtab_prediction_error",
    MetricKind.HISTOGRAM,
    "Difference of realised and predicted usage on either side of a settled move, in points.",
    ("cluster",),
    (0.25, 0.5, 1.0, 2.0, 3.0, 5.0, 7.5, 10.0, 20.0, 50.0),
)
PREDICTION_BIAS: Final = Metric(
    "trimtab_prediction_bias",
    MetricKind.GAUGE,
    "Mean of realised less predicted usage over the last sides of settled moves, in points.",
    ("cluster",),
)
SETTLED: Final = Metric(
    "trimtab_settled_moves",
    MetricKind.COUNTER,
    "Moves that are waited for no longer: landed, failed, lost (with a broker), expired.",
    ("cluster", "outcome"),
)
BREAKER_TRIPS: Final = Metric(
    "trimtab_breaker_trips",
    MetricKind.COUNTER,
    "Plans after which the range of usage, hand-overs or failed transfers were worse, by cause.",
    ("cluster", "cause"),
)
BREAKER_OPEN: Final = Metric(
    "trimtab_breaker_open",
    MetricKind.GAUGE,
    "1 while no strategy is asked, after a plan that did harm.",
    ("cluster",),
)

# The challenger of the strategy in charge
_SIDES: Final = ("cluster", "side", "strategy")
SHADOW_RANGE: Final = Metric(
    "trimtab_shadow_range_ratio",
    MetricKind.GAUGE,
    "Highest less lowest usage, of the champion (true) and of its challenger (predicted).",
    _SIDES,
)
SHADOW_MOVES: Final = Metric(
    "trimtab_shadow_moves",
    MetricKind.COUNTER,
    "Moves decided by the champion, and by its challenger, whose moves are only counted.",
    _SIDES,
)
SHADOW_BOUNCES: Final = Metric(
    "trimtab_shadow_bounces",
    MetricKind.COUNTER,
    "Those of them to a broker that the bundle had left within a day.",
    _SIDES,
)

# Sinks
GENERATION: Final = Metric("trimtab_generation", MetricKind.GAUGE, "This job's generation.")
REPEATED: Final = Metric(
    "trimtab_repeated_batches",
    MetricKind.COUNTER,
    "Batches Redis had applied before.",
    ("cluster",),
)
SINK_WAITS: Final = Metric(
    "trimtab_sink_waits", MetricKind.COUNTER, "Times a batch had to wait for a sink.", ("sink",)
)
SINK_SECONDS: Final = Metric(
    "trimtab_sink_seconds",
    MetricKind.HISTOGRAM,
    "Time a batch spends in a sink.",
    ("sink",),
    _SECONDS,
)
DAMAGED: Final = Metric(
    "trimtab_damaged_clusters",
    MetricKind.COUNTER,
    "Times a batch left a cluster out, because a key of it in Redis is not as trimtab writes it.",
    ("cluster",),
)
RELAYED: Final = Metric(
    "trimtab_journal_relayed", MetricKind.COUNTER, "Transitions carried to Kafka.", ("cluster",)
)
JOURNAL_STOPS: Final = Metric(
    "trimtab_journal_stops",
    MetricKind.COUNTER,
    "Times a cluster's journal could not be carried; it is tried again.",
    ("cluster",),
)
REFILLED: Final = Metric(
    "trimtab_journal_refilled",
    MetricKind.COUNTER,
    "Bundles whose changes the full journal left out: their newest records were put there later.",
    ("cluster",),
)
PRUNED: Final = Metric(
    "trimtab_pruned_records",
    MetricKind.COUNTER,
    "Records removed of bundles that ended long ago.",
    ("cluster",),
)
UNEXPLAINED: Final = Metric(
    "trimtab_rounds_unexplained",
    MetricKind.COUNTER,
    "Rounds that could not be explained, or whose explanations Redis did not take.",
    ("cluster",),
)
REBUILD_SECONDS: Final = Metric(
    "trimtab_rebuild_seconds",
    MetricKind.HISTOGRAM,
    "From finding the ownership store closed to opening it with all records.",
    buckets=(0.1, 1.0, 5.0, 10.0, 15.0, 30.0, 60.0),
)
RESTORED: Final = Metric(
    "trimtab_restored_records",
    MetricKind.COUNTER,
    "Records the store had lost, by who still had them: journal, brokers.",
    ("cluster", "source"),
)
DISBELIEVED: Final = Metric(
    "trimtab_disbelieved_records",
    MetricKind.COUNTER,
    "Records that a rebuild or a new job ignored, unreadable or implausible, by source: store, "
    "journal, brokers.",
    ("cluster", "source"),
)

# The driver
ACTIVE: Final = Metric(
    "trimtab_active",
    MetricKind.GAUGE,
    "1 while this job holds the claim to act, 0 while it stands by.",
)
LEASES: Final = Metric(
    "trimtab_leases", MetricKind.GAUGE, "Brokers that hold a lease.", ("cluster",)
)
CLOCK_DRIFT: Final = Metric(
    "trimtab_redis_clock_drift_seconds",
    MetricKind.GAUGE,
    "By how much Redis's clock and the driver's monotonic one disagree on the time of a lease.",
)

CATALOGUE: Final = tuple(value for value in globals().values() if isinstance(value, Metric))
