"""The metrics of the job: every name that its dashboards, alerts and code may use.

It is one long list, in the order of a batch, so that a name is found and compared in one place.

Labels stay few: clusters, brokers and closed sets of reasons, never a tenant or a topic; of bundles
only the twenty that one topic keeps busy.
"""

from __future__ import annotations

from typing import Final

from trimtab.metrics.metric import Metric, MetricKind

_SECONDS: Final = (0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 2.0, 5.0, 10.0, 30.0)

# Intake
REPORTS: Final = Metric(
    "trimtab_load_reports",
    MetricKind.COUNTER,
    "Load reports by outcome: accepted, duplicate, or old (older than one already accepted).",
    ("cluster", "verdict"),
)
DEAD_LETTERS: Final = Metric(
    "trimtab_dead_letters",
    MetricKind.COUNTER,
    "Kafka records that could not be used and were sent to the dead-letter topic, by their topic "
    "and the reason.",
    ("topic", "reason"),
)
IMPLAUSIBLE: Final = Metric(
    "trimtab_implausible_reports",
    MetricKind.COUNTER,
    "Load reports rejected because a figure is higher than any hardware allows, by the field of "
    "the report. The job uses the broker's last accepted report until the broker counts as "
    "silent. The log names the broker.",
    ("cluster", "field"),
)
REPORT_AGE: Final = Metric(
    "trimtab_newest_report_age_seconds",
    MetricKind.GAUGE,
    "Age of a cluster's newest load report when its batch began, counted from Kafka's append time.",
    ("cluster",),
)

# Batches
BATCHES: Final = Metric("trimtab_batches", MetricKind.COUNTER, "Batches finished.")
BATCH_SECONDS: Final = Metric(
    "trimtab_batch_seconds", MetricKind.HISTOGRAM, "Duration of a batch.", buckets=_SECONDS
)
BATCH_STAGE: Final = Metric(
    "trimtab_batch_stage_seconds",
    MetricKind.GAUGE,
    "Duration of each stage of the last batch, as Spark measures them.",
    ("stage",),
)
INPUT_RECORDS: Final = Metric(
    "trimtab_input_records", MetricKind.COUNTER, "Records read from Kafka, by topic.", ("topic",)
)
LAG: Final = Metric(
    "trimtab_input_lag_records",
    MetricKind.GAUGE,
    "Records in Kafka that no batch has read yet, by topic.",
    ("topic",),
)
STATE_KEYS: Final = Metric(
    "trimtab_state_keys", MetricKind.GAUGE, "Keys in the state of each operator.", ("operator",)
)
STATE_BYTES: Final = Metric(
    "trimtab_state_bytes",
    MetricKind.GAUGE,
    "Memory used by the state of each operator.",
    ("operator",),
)
LAST_PROGRESS: Final = Metric(
    "trimtab_last_batch_timestamp_seconds",
    MetricKind.GAUGE,
    "When the last batch ended, as Unix time.",
)
QUERY_RESTARTS: Final = Metric(
    "trimtab_query_restarts",
    MetricKind.COUNTER,
    "Times the streaming query failed and was started again.",
)

# Decisions
ROUNDS: Final = Metric(
    "trimtab_rounds",
    MetricKind.COUNTER,
    "Rounds by outcome: planned, or the rule because of which nothing was shed.",
    ("cluster", "outcome"),
)
PLANNED_CHANGES: Final = Metric(
    "trimtab_planned_changes",
    MetricKind.COUNTER,
    "Moves, splits and merges that rounds decided on, by reason.",
    ("cluster", "reason"),
)
REFUSED_WISHES: Final = Metric(
    "trimtab_refused_wishes",
    MetricKind.COUNTER,
    "Wishes of a strategy that the round refused, by the rule that refused them.",
    ("cluster", "rule"),
)
MOVES: Final = Metric(
    "trimtab_moves",
    MetricKind.COUNTER,
    "Moves requested from the ownership store, by outcome: accepted, or the reason of the refusal.",
    ("cluster", "outcome"),
)
SPLITS: Final = Metric(
    "trimtab_splits",
    MetricKind.COUNTER,
    "Splits requested from the ownership store, by outcome: accepted, or the reason of the "
    "refusal.",
    ("cluster", "outcome"),
)
MERGES: Final = Metric(
    "trimtab_merges",
    MetricKind.COUNTER,
    "Merges requested from the ownership store, by outcome: accepted, or the reason of the "
    "refusal.",
    ("cluster", "outcome"),
)
REPAIRS: Final = Metric(
    "trimtab_repairs",
    MetricKind.COUNTER,
    "Ownership repairs requested from the store, by event and outcome: accepted, or the reason of "
    "the refusal.",
    ("cluster", "event", "outcome"),
)
USAGE: Final = Metric(
    "trimtab_broker_usage_ratio",
    MetricKind.GAUGE,
    "Weighted usage of a broker as the strategies see it: 1 is fully used.",
    ("cluster", "broker"),
    by_broker=True,
)
SMOOTHED_USAGE: Final = Metric(
    "trimtab_broker_smoothed_usage_ratio",
    MetricKind.GAUGE,
    "Weighted usage of a broker, computed from averages of its resources (intake.half_life). "
    "trimtab's own strategy predicts from these averages. 1 is fully used.",
    ("cluster", "broker"),
    by_broker=True,
)
USAGE_RANGE: Final = Metric(
    "trimtab_usage_range_ratio",
    MetricKind.GAUGE,
    "Highest minus lowest usage of a cluster's brokers. Balancing makes it small.",
    ("cluster",),
)
USAGE_DEVIATION: Final = Metric(
    "trimtab_usage_deviation_ratio",
    MetricKind.GAUGE,
    "Standard deviation of the brokers' usage in a cluster.",
    ("cluster",),
)
HITS: Final = Metric(
    "trimtab_hits",
    MetricKind.GAUGE,
    "For how many rounds in a row a broker, or the fleet, was out of balance: the highest count, "
    "by counter of the active strategy. A strategy that does not count hits has no series.",
    ("cluster", "counter"),
)
HITS_NEEDED: Final = Metric(
    "trimtab_hits_needed",
    MetricKind.GAUGE,
    "Number of hits at which the active strategy acts, by counter.",
    ("cluster", "counter"),
)
BOUNCES: Final = Metric(
    "trimtab_bounces",
    MetricKind.COUNTER,
    "Moves wanted by a strategy that go back to a broker which the bundle left less than a day "
    "ago. A driver counts only what it has seen since its own start.",
    ("cluster",),
)
BROKERS: Final = Metric(
    "trimtab_brokers", MetricKind.GAUGE, "Brokers that the last round saw.", ("cluster",)
)
BUNDLES: Final = Metric(
    "trimtab_bundles", MetricKind.GAUGE, "Bundles that the last round saw.", ("cluster",)
)
SIZE_USED: Final = Metric(
    "trimtab_size_used_ratio",
    MetricKind.GAUGE,
    "Size of all clusters together, as a fraction of the fleet that the job's memory is sized for: "
    "by brokers or by bundles, whichever is higher. Above 1 the job may run out of memory.",
)
EXCLUDED: Final = Metric(
    "trimtab_excluded_bundles",
    MetricKind.GAUGE,
    "Bundles that the last round could not consider, by the rule that excluded them.",
    ("cluster", "rule"),
)
UNSERVED: Final = Metric(
    "trimtab_unserved_bundles",
    MetricKind.GAUGE,
    "Bundles without a serving broker, by the ownership records of the last round, including "
    "quarantined bundles.",
    ("cluster",),
)
UNSERVED_SECONDS: Final = Metric(
    "trimtab_unserved_oldest_seconds",
    MetricKind.GAUGE,
    "Longest time for which a bundle had no serving broker when the last round began; 0 if every "
    "bundle had one.",
    ("cluster",),
)
UNAVAILABLE: Final = Metric(
    "trimtab_unavailable_brokers",
    MetricKind.GAUGE,
    "Brokers that get no bundles, by cause: gone, draining, held-back (returned after a loss).",
    ("cluster", "cause"),
)
DOUBT: Final = Metric(
    "trimtab_doubt",
    MetricKind.GAUGE,
    "1 for the current level of doubt, 0 for the others: stable, jittery (only repairs, and those "
    "late), unstable (no changes at all).",
    ("cluster", "level"),
)
REFUSED_INTENTS: Final = Metric(
    "trimtab_refused_intents",
    MetricKind.COUNTER,
    "Intents that changed nothing because they broke a rule, by rule. The topic "
    "trimtab.dead-letters has each of them, and what is wrong with it.",
    ("cluster", "rule"),
)
INTENT_OUTCOMES: Final = Metric(
    "trimtab_intent_outcomes",
    MetricKind.COUNTER,
    "Outcomes of operators' intents, by kind and outcome: refused, accepted, done or expired. An "
    "intent that takes time is counted twice: first as accepted, at its end as done or expired.",
    ("cluster", "kind", "outcome"),
)
PROBLEMS: Final = Metric(
    "trimtab_problems",
    MetricKind.GAUGE,
    "Problems that need an operator: namespaces whose bundles do not tile the ring, refused "
    "intents, topics that need more partitions. The round's record names them.",
    ("cluster",),
)

BUSY_TOPIC_BYTES: Final = Metric(
    "trimtab_busy_topic_bytes",
    MetricKind.GAUGE,
    "Long-term bytes/s, in and out, of a bundle in which one topic carries almost all the load. No "
    "split helps; the topic needs more partitions. The round's problems say how to find the topic.",
    ("cluster", "bundle"),
)

# Predictions and their outcome
PREDICTION_ERROR: Final = Metric(
    "trimtab_prediction_error_ratio",
    MetricKind.HISTOGRAM,
    "Absolute difference between predicted and actual usage, for both brokers of each finished "
    "move. 0.01 is one point of usage.",
    ("cluster",),
    (0.0025, 0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.2, 0.5),
)
PREDICTION_BIAS: Final = Metric(
    "trimtab_prediction_bias_ratio",
    MetricKind.GAUGE,
    "Mean of actual minus predicted usage over recent finished moves. 0.01 is one point of usage.",
    ("cluster",),
)
FINISHED_MOVES: Final = Metric(
    "trimtab_finished_moves",
    MetricKind.COUNTER,
    "Moves that the job no longer waits for, by outcome: landed, failed, lost (a broker of the "
    "move was lost), expired.",
    ("cluster", "outcome"),
)
BREAKER_TRIPS: Final = Metric(
    "trimtab_breaker_trips",
    MetricKind.COUNTER,
    "Plans that made things worse and stopped further plans, by cause: range, hand-overs, failed "
    "transfers, missed forecasts.",
    ("cluster", "cause"),
)
BREAKER_OPEN: Final = Metric(
    "trimtab_breaker_open",
    MetricKind.GAUGE,
    "1 while the breaker is open: no strategy may plan, because a plan made things worse.",
    ("cluster",),
)

# The active strategy and its shadow
_ROLES: Final = ("cluster", "role", "strategy")
SHADOW_RANGE: Final = Metric(
    "trimtab_shadow_range_ratio",
    MetricKind.GAUGE,
    "Highest minus lowest usage under the active strategy (measured) and under the shadow "
    "strategy (predicted).",
    _ROLES,
)
SHADOW_MOVES: Final = Metric(
    "trimtab_shadow_moves",
    MetricKind.COUNTER,
    "Moves decided by the active strategy, and by the shadow strategy. The shadow's moves are only "
    "counted, not made.",
    _ROLES,
)
SHADOW_BOUNCES: Final = Metric(
    "trimtab_shadow_bounces",
    MetricKind.COUNTER,
    "Moves of either strategy back to a broker that the bundle left less than a day ago.",
    _ROLES,
)

# Sinks
GENERATION: Final = Metric(
    "trimtab_generation",
    MetricKind.GAUGE,
    "Generation of this job's claim to act; each new claim has a higher one.",
)
FENCED: Final = Metric(
    "trimtab_fenced_writes",
    MetricKind.COUNTER,
    "Writes that a sink refused because it had seen the generation of a newer job, by sink. A job "
    "whose write is refused by Kafka ends.",
    ("sink",),
)
DURABLE: Final = Metric(
    "trimtab_redis_durable",
    MetricKind.GAUGE,
    "1 if Redis writes what it acknowledges to an append-only file, and its last such write "
    "succeeded. 0 if a crash of Redis loses records; brokers and the journal then restore them. "
    "NaN if the job's Redis user is not allowed to ask.",
)
REPEATED: Final = Metric(
    "trimtab_repeated_batches",
    MetricKind.COUNTER,
    "Batches that Spark ran again after Redis had already applied them.",
    ("cluster",),
)
SINK_WAITS: Final = Metric(
    "trimtab_sink_waits",
    MetricKind.COUNTER,
    "Times a batch had to wait because Redis or Kafka was unreachable, by sink.",
    ("sink",),
)
SINK_SECONDS: Final = Metric(
    "trimtab_sink_seconds",
    MetricKind.HISTOGRAM,
    "Time that a batch spent writing to a sink.",
    ("sink",),
    _SECONDS,
)
SKIPPED_CLUSTERS: Final = Metric(
    "trimtab_skipped_clusters",
    MetricKind.COUNTER,
    "Times a batch skipped a cluster because one of its keys in Redis is damaged, because replicas "
    "are missing, or because Redis is set to delete keys when it is full. The log says which.",
    ("cluster",),
)
RELAYED_CHANGES: Final = Metric(
    "trimtab_relayed_changes",
    MetricKind.COUNTER,
    "Ownership changes copied from the journal in Redis to Kafka.",
    ("cluster",),
)
RELAY_FAILURES: Final = Metric(
    "trimtab_relay_failures",
    MetricKind.COUNTER,
    "Times a cluster's journal could not be copied to Kafka. The job retries.",
    ("cluster",),
)
REFILLED_BUNDLES: Final = Metric(
    "trimtab_refilled_bundles",
    MetricKind.COUNTER,
    "Bundles whose changes were left out because the journal was full, and whose newest record was "
    "added to the journal later.",
    ("cluster",),
)
PRUNED: Final = Metric(
    "trimtab_pruned_records",
    MetricKind.COUNTER,
    "Records removed from Redis because their bundle was deleted long ago.",
    ("cluster",),
)
UNEXPLAINED_ROUNDS: Final = Metric(
    "trimtab_unexplained_rounds",
    MetricKind.COUNTER,
    "Rounds whose explanations are not stored: making them failed, or Redis refused them.",
    ("cluster",),
)
REBUILD_SECONDS: Final = Metric(
    "trimtab_rebuild_seconds",
    MetricKind.HISTOGRAM,
    "Time from finding the ownership store closed to opening it with all records.",
    buckets=(0.1, 1.0, 5.0, 10.0, 15.0, 30.0, 60.0),
)
RESTORED: Final = Metric(
    "trimtab_restored_records",
    MetricKind.COUNTER,
    "Records that the store lost and that were restored, by source: journal, brokers.",
    ("cluster", "source"),
)
IGNORED_RECORDS: Final = Metric(
    "trimtab_ignored_records",
    MetricKind.COUNTER,
    "Ownership records that were ignored because they are unreadable or implausible, by source: "
    "store, journal, brokers.",
    ("cluster", "source"),
)

# The driver
LEADER: Final = Metric(
    "trimtab_leader",
    MetricKind.GAUGE,
    "1 while this job is the active driver, 0 while it is on standby.",
)
LEASES: Final = Metric(
    "trimtab_leases", MetricKind.GAUGE, "Brokers that hold a lease.", ("cluster",)
)
MIGRATIONS: Final = Metric(
    "trimtab_migrations",
    MetricKind.GAUGE,
    "Migrations to another cluster, by state, without those that were rolled back.",
    ("cluster", "state"),
)
MIGRATING_TOPICS: Final = Metric(
    "trimtab_migrating_topics",
    MetricKind.GAUGE,
    "Topics, by state, of migrations that are under way or completed, and topics that a rollback "
    "left on the other cluster. The state stays counts again those of them that a rollback leaves "
    "there.",
    ("cluster", "state"),
)
MIGRATION_BACKLOG: Final = Metric(
    "trimtab_migration_backlog_messages",
    MetricKind.GAUGE,
    "Messages of terminated topics that consumers have not yet read on this cluster.",
    ("cluster",),
)
MIGRATION_STEPS: Final = Metric(
    "trimtab_migration_steps",
    MetricKind.GAUGE,
    "Steps that brokers have tried for migrating topics, by result: done, failed.",
    ("cluster", "result"),
)
MIGRATIONS_STOPPED: Final = Metric(
    "trimtab_stopped_migrations",
    MetricKind.GAUGE,
    "Migrations that their gate paused because too many steps failed. Those that a person paused "
    "do not count.",
    ("cluster",),
)
MIGRATION_IDLE: Final = Metric(
    "trimtab_migration_idle_seconds",
    MetricKind.GAUGE,
    "Longest time for which a migration that runs or is rolled back has made no progress: no step "
    "done, no topic found, no wave begun. A new driver continues the count.",
    ("cluster",),
)
CLOCK_DRIFT: Final = Metric(
    "trimtab_redis_clock_drift_seconds",
    MetricKind.GAUGE,
    "How far Redis's clock drifted from the driver's monotonic clock during one lease.",
)

METRICS: Final = tuple(value for value in globals().values() if isinstance(value, Metric))
"""All of them."""
