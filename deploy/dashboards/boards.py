"""The boards: what each shows to answer which question."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from deploy.dashboards.board import Board, Kind, Panel, Query, Unit
from deploy.dashboards.promql import buckets, increase, mean, now, quantile, rate, top
from trimtab.metrics import agent, job

FOLDER: Final = Path(__file__).parents[1] / "grafana" / "dashboards"

_BALANCE: Final = Board(
    "trimtab-balance",
    "trimtab: cluster balance",
    "Is the load spread evenly, and what does it cost to keep it so?",
    (
        (
            "Usage",
            (
                Panel(
                    "Usage of each broker",
                    "Which broker is hot, and since when? The fifty busiest.",
                    (Query(top(50, now(job.USAGE)), "{{broker}}"),),
                    Unit.RATIO,
                    Kind.GRID,
                    12,
                ),
                Panel(
                    "Brokers by usage",
                    "How far are the brokers apart, however many there are?",
                    (Query(now(job.USAGE), "{{broker}}"),),
                    Unit.RATIO,
                    Kind.DISTRIBUTION,
                    12,
                ),
                Panel(
                    "Range and deviation",
                    "Does balancing make the differences small?",
                    (
                        Query(now(job.USAGE_RANGE), "range, {{cluster}}"),
                        Query(now(job.USAGE_DEVIATION), "deviation, {{cluster}}"),
                    ),
                    Unit.RATIO,
                ),
                Panel(
                    "Hits",
                    "How close is the strategy to acting? Strategies that count no hits have none.",
                    (
                        Query(now(job.HITS), "{{counter}}, {{cluster}}"),
                        Query(now(job.HITS_NEEDED), "{{counter}} acts at, {{cluster}}"),
                    ),
                    Unit.COUNT,
                ),
                Panel(
                    "Active strategy and shadow",
                    "Would the other strategy keep the brokers closer together?",
                    (Query(now(job.SHADOW_RANGE), "{{role}}: {{strategy}}, {{cluster}}"),),
                    Unit.RATIO,
                ),
            ),
        ),
        (
            "Changes",
            (
                Panel(
                    "Changes by reason",
                    "Why do bundles move, and how many?",
                    (Query(rate(job.PLANNED_CHANGES, "reason"), "{{reason}}"),),
                    Unit.PER_SECOND,
                ),
                Panel(
                    "Moves",
                    "What does the ownership store say to the moves?",
                    (Query(rate(job.MOVES, "outcome"), "{{outcome}}"),),
                    Unit.PER_SECOND,
                ),
                Panel(
                    "Bounces in the last hour",
                    "Do bundles go back to where they came from?",
                    (Query(increase(job.BOUNCES, "cluster"), "{{cluster}}"),),
                    Unit.COUNT,
                ),
                Panel(
                    "Rounds by outcome",
                    "Why does a round plan nothing?",
                    (Query(rate(job.ROUNDS, "outcome"), "{{outcome}}"),),
                    Unit.PER_SECOND,
                ),
                Panel(
                    "Bundles that may not move",
                    "Which rule keeps bundles where they are?",
                    (Query(f"sum by (rule) ({now(job.EXCLUDED)})", "{{rule}}"),),
                    Unit.COUNT,
                ),
            ),
        ),
        (
            "Predicted against realised",
            (
                Panel(
                    "Prediction error",
                    "How far from its forecast is a broker after a move?",
                    (
                        Query(quantile(0.5, job.PREDICTION_ERROR, "cluster"), "p50, {{cluster}}"),
                        Query(quantile(0.9, job.PREDICTION_ERROR, "cluster"), "p90, {{cluster}}"),
                        Query(mean(job.PREDICTION_ERROR, "cluster"), "mean, {{cluster}}"),
                    ),
                    Unit.RATIO,
                ),
                Panel(
                    "Bias",
                    "Do brokers get more than was predicted (above 0), or less?",
                    (Query(now(job.PREDICTION_BIAS), "{{cluster}}"),),
                    Unit.RATIO,
                ),
                Panel(
                    "Finished moves",
                    "How do moves end?",
                    (Query(rate(job.FINISHED_MOVES, "outcome"), "{{outcome}}"),),
                    Unit.PER_SECOND,
                ),
            ),
        ),
    ),
)

_PIPELINE: Final = Board(
    "trimtab-pipeline",
    "trimtab: pipeline health",
    "Does the job read, decide and write in time?",
    (
        (
            "Batches",
            (
                Panel(
                    "Since the last batch",
                    "Is the job stalled?",
                    (Query(f"time() - {now(job.LAST_PROGRESS)}", "{{instance}}"),),
                    Unit.SECONDS,
                    Kind.NUMBER,
                    6,
                ),
                Panel(
                    "Duration of a batch",
                    "How long do batches take?",
                    (
                        Query(quantile(0.5, job.BATCH_SECONDS), "p50"),
                        Query(quantile(0.99, job.BATCH_SECONDS), "p99"),
                    ),
                    Unit.SECONDS,
                    width=9,
                ),
                Panel(
                    "Stages of the last batch",
                    "Where does a batch spend its time?",
                    (Query(now(job.BATCH_STAGE), "{{stage}}"),),
                    Unit.SECONDS,
                    width=9,
                ),
            ),
        ),
        (
            "Input",
            (
                Panel(
                    "Lag",
                    "How many records wait in Kafka?",
                    (Query(now(job.LAG), "{{topic}}"),),
                    Unit.COUNT,
                ),
                Panel(
                    "Records read",
                    "How much arrives?",
                    (Query(rate(job.INPUT_RECORDS, "topic"), "{{topic}}"),),
                    Unit.PER_SECOND,
                ),
                Panel(
                    "Age of the newest report",
                    "Do the brokers report, and does it arrive?",
                    (
                        Query(now(job.REPORT_AGE), "job, {{cluster}}"),
                        Query(f"max by (cluster) ({now(agent.REPORT_AGE)})", "agents, {{cluster}}"),
                    ),
                    Unit.SECONDS,
                ),
                Panel(
                    "Load reports",
                    "Are reports accepted?",
                    (Query(rate(job.REPORTS, "verdict"), "{{verdict}}"),),
                    Unit.PER_SECOND,
                ),
                Panel(
                    "Dead letters",
                    "What cannot be used, and why?",
                    (Query(rate(job.DEAD_LETTERS, "topic", "reason"), "{{topic}}: {{reason}}"),),
                    Unit.PER_SECOND,
                ),
                Panel(
                    "Size used",
                    "Does the fleet outgrow the job's memory? Above 100 % it may run out.",
                    (Query(now(job.SIZE_USED), "{{instance}}"),),
                    Unit.RATIO,
                ),
            ),
        ),
        (
            "State and sinks",
            (
                Panel(
                    "Rows of state",
                    "How many keys does each operator keep?",
                    (Query(now(job.STATE_KEYS), "{{operator}}"),),
                    Unit.COUNT,
                    width=6,
                ),
                Panel(
                    "Size of state",
                    "How much memory do they take?",
                    (Query(now(job.STATE_BYTES), "{{operator}}"),),
                    Unit.BYTES,
                    width=6,
                ),
                Panel(
                    "Time to write",
                    "Is Redis or Kafka slow?",
                    (Query(quantile(0.99, job.SINK_SECONDS, "sink"), "p99, {{sink}}"),),
                    Unit.SECONDS,
                    width=6,
                ),
                Panel(
                    "Journal",
                    "Do changes of ownership reach Kafka?",
                    (Query(rate(job.RELAYED_CHANGES, "cluster"), "{{cluster}}"),),
                    Unit.PER_SECOND,
                    width=6,
                ),
            ),
        ),
    ),
)

_SAFETY: Final = Board(
    "trimtab-safety",
    "trimtab: safety",
    "Has each bundle exactly one owner, and who decides?",
    (
        (
            "Who decides",
            (
                Panel(
                    "Active drivers",
                    "Is there exactly one?",
                    (Query(f"sum({now(job.LEADER)})"),),
                    Unit.COUNT,
                    Kind.NUMBER,
                    6,
                ),
                Panel(
                    "Generation",
                    "Who took over, and when?",
                    (Query(now(job.GENERATION), "{{instance}}"),),
                    Unit.COUNT,
                    width=6,
                ),
                Panel(
                    "Fenced writes in the last hour",
                    "Did an older job still try to write?",
                    (Query(f"sum(increase({now(job.FENCED)}[1h])) or vector(0)"),),
                    Unit.COUNT,
                    Kind.NUMBER,
                    6,
                ),
                Panel(
                    "Redis is durable",
                    "Does Redis keep what it acknowledges? 1: yes.",
                    (Query(now(job.DURABLE), "{{instance}}"),),
                    Unit.COUNT,
                    Kind.NUMBER,
                    6,
                ),
            ),
        ),
        (
            "Ownership",
            (
                Panel(
                    "Bundles without a serving broker",
                    "Is anything not served?",
                    (Query(now(job.UNSERVED), "{{cluster}}"),),
                    Unit.COUNT,
                ),
                Panel(
                    "The oldest of them",
                    "For how long?",
                    (Query(now(job.UNSERVED_SECONDS), "{{cluster}}"),),
                    Unit.SECONDS,
                ),
                Panel(
                    "Doubt",
                    "How far is ownership trusted? Jittery: only repairs; unstable: no changes.",
                    (Query(f"{now(job.DOUBT)} > 0", "{{level}}, {{cluster}}"),),
                    Unit.COUNT,
                ),
                Panel(
                    "Hand-overs",
                    "For how long has a bundle that moves no serving broker?",
                    (Query(buckets(agent.HANDOVER), "{{le}}"),),
                    Unit.SECONDS,
                    Kind.BUCKETS,
                ),
                Panel(
                    "Hand-overs: quantiles",
                    "The same as figures.",
                    (
                        Query(quantile(0.5, agent.HANDOVER), "p50"),
                        Query(quantile(0.99, agent.HANDOVER), "p99"),
                    ),
                    Unit.SECONDS,
                ),
                Panel(
                    "Commands",
                    "What do brokers do with their commands?",
                    (
                        Query(
                            rate(agent.COMMANDS, "kind", "outcome"),
                            "{{kind}}: {{outcome}}",
                        ),
                    ),
                    Unit.PER_SECOND,
                ),
            ),
        ),
        (
            "Leases",
            (
                Panel(
                    "Brokers with a lease",
                    "Who may serve?",
                    (
                        Query(now(job.LEASES), "leases, {{cluster}}"),
                        Query(now(job.BROKERS), "brokers, {{cluster}}"),
                    ),
                    Unit.COUNT,
                ),
                Panel(
                    "Shortest leases",
                    "Whose lease is about to run out?",
                    (Query(f"bottomk(10, {now(agent.LEASE)})", "{{broker}}"),),
                    Unit.SECONDS,
                ),
                Panel(
                    "Brokers that get no bundles",
                    "Who is gone, held back or drained?",
                    (Query(now(job.UNAVAILABLE), "{{cause}}, {{cluster}}"),),
                    Unit.COUNT,
                ),
            ),
        ),
    ),
)

_MIGRATION: Final = Board(
    "trimtab-migration",
    "trimtab: migration",
    "How far have topics come to the other cluster, and what holds them up?",
    (
        (
            "Topics",
            (
                Panel(
                    "Topics by state",
                    "How many are still here, on their way, and there?",
                    (Query(now(job.MIGRATING_TOPICS), "{{state}}, {{cluster}}"),),
                    Unit.COUNT,
                    width=24,
                ),
                Panel(
                    "Backlog",
                    "How many messages must consumers still read before they are sent on?",
                    (Query(now(job.MIGRATION_BACKLOG), "{{cluster}}"),),
                    Unit.COUNT,
                ),
                Panel(
                    "Steps",
                    "Do brokers' steps fail? A rate above the gate's pauses the migration.",
                    (Query(now(job.MIGRATION_STEPS), "{{result}}, {{cluster}}"),),
                    Unit.COUNT,
                ),
                Panel(
                    "Migrations by state",
                    "Does one run, wait for a person, or go back? Has a gate paused one?",
                    (
                        Query(now(job.MIGRATIONS), "{{state}}, {{cluster}}"),
                        Query(now(job.MIGRATIONS_STOPPED), "paused by its gate, {{cluster}}"),
                    ),
                    Unit.COUNT,
                ),
                Panel(
                    "Without progress",
                    "For how long has one that runs come no further?",
                    (Query(now(job.MIGRATION_IDLE), "{{cluster}}"),),
                    Unit.SECONDS,
                ),
            ),
        ),
        (
            "Brokers",
            (
                Panel(
                    "Steps by kind",
                    "What do brokers do for topics now?",
                    (Query(rate(agent.MIGRATION_STEPS, "step", "result"), "{{step}}, {{result}}"),),
                    Unit.PER_SECOND,
                ),
                Panel(
                    "Brokers whose steps fail",
                    "At which brokers do they fail?",
                    (
                        Query(
                            top(
                                10,
                                rate(
                                    agent.MIGRATION_STEPS,
                                    "broker",
                                    "step",
                                    matchers=('result="failed"',),
                                ),
                            ),
                            "{{broker}}, {{step}}",
                        ),
                    ),
                    Unit.PER_SECOND,
                ),
            ),
        ),
    ),
)

BOARDS: Final = (_BALANCE, _PIPELINE, _SAFETY, _MIGRATION)
