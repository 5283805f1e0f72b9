"""Metrics from the rows of a batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from sinks.exposition import Exposition
from trimtab.doubt import Doubt
from trimtab.metrics import job as metrics
from trimtab.ownership import Event
from trimtab.wire.intent_outcome import IntentOutcome
from trimtab.wire.ownership import Transition, TransitionOutcome
from trimtab.wire.rounds import RoundRecord, ShadowRecord
from trimtab.wire.rows import DeadLetter, Intake


def show_intake(shown: Exposition, intake: Intake, batch_ms: int) -> None:
    for verdict in ("accepted", "duplicate", "old"):
        shown.count(metrics.REPORTS, intake.cluster, verdict, by=getattr(intake, verdict))
    age = max(0, batch_ms - intake.newest_ms) / 1000
    shown.set(metrics.REPORT_AGE, age, intake.cluster)


def show_dead_letter(shown: Exposition, letter: DeadLetter) -> None:
    shown.count(metrics.DEAD_LETTERS, letter.topic, letter.reason)
    if letter.field:
        cluster = letter.key.partition("/")[0]
        shown.count(metrics.IMPLAUSIBLE, cluster, letter.field)
    if letter.rule:
        shown.count(metrics.REFUSED_INTENTS, letter.key, letter.rule)


def show_intent_outcomes(shown: Exposition, outcomes: Iterable[IntentOutcome]) -> None:
    for each in outcomes:
        shown.count(metrics.INTENT_OUTCOMES, each.cluster, each.kind.value, each.state.value)


def show_round(shown: Exposition, record: RoundRecord) -> None:
    """Show a round; removes the gauges of brokers that left the view."""
    cluster = record.cluster
    shown.count(metrics.ROUNDS, cluster, record.skipped or "planned")
    reasons = [move.reason for move in record.moves] + [split.reason for split in record.splits]
    reasons += [merge.reason for merge in record.merges]
    for reason, number in Counter(reasons).items():
        shown.count(metrics.PLANNED_CHANGES, cluster, reason, by=number)
    for rule, number in record.refused.items():
        shown.count(metrics.REFUSED_WISHES, cluster, rule, by=number)
    _show_usage(shown, record)
    shown.forget(metrics.EXCLUDED, cluster)
    for rule, number in record.obstacles.items():
        shown.set(metrics.EXCLUDED, number, cluster, rule)
    shown.set(metrics.PROBLEMS, len(record.problems), cluster)
    shown.forget(metrics.BUSY_TOPIC_BYTES, cluster)
    for busy in record.busy_topics:
        shown.set(metrics.BUSY_TOPIC_BYTES, busy.throughput, cluster, busy.bundle)
    _show_trouble(shown, record)
    _show_settled(shown, record)
    _show_shadow(shown, record.cluster, record.shadow)


def _show_usage(shown: Exposition, record: RoundRecord) -> None:
    cluster = record.cluster
    shown.set_brokers(metrics.USAGE, cluster, record.usage)
    shown.set_brokers(metrics.SMOOTHED_USAGE, cluster, record.smoothed_usage)
    for metric, figure in (
        (metrics.USAGE_RANGE, "usage_range"),
        (metrics.USAGE_DEVIATION, "usage_deviation"),
        (metrics.BROKERS, "brokers"),
        (metrics.BUNDLES, "bundles"),
    ):
        shown.set(metric, record.summary.get(figure, 0.0), cluster)
    for metric in (metrics.HITS, metrics.HITS_NEEDED):
        shown.forget(metric, cluster)
    for counter, (hits, needed) in record.hits.items():
        shown.set(metrics.HITS, hits, cluster, counter)
        shown.set(metrics.HITS_NEEDED, needed, cluster, counter)


def _show_trouble(shown: Exposition, record: RoundRecord) -> None:
    cluster = record.cluster
    for level in Doubt:
        shown.set(metrics.DOUBT, record.doubt == level, cluster, level)
    shown.set(metrics.UNSERVED, record.unserved, cluster)
    since_ms = record.unserved_since or record.at
    shown.set(metrics.UNSERVED_SECONDS, max(0, record.at - since_ms) / 1000, cluster)
    shown.set(metrics.UNAVAILABLE, len(record.gone), cluster, "gone")
    shown.set(metrics.UNAVAILABLE, len(record.draining), cluster, "draining")
    shown.set(metrics.UNAVAILABLE, len(record.held_back), cluster, "held-back")


def _show_settled(shown: Exposition, record: RoundRecord) -> None:
    cluster = record.cluster
    shown.begin(metrics.PREDICTION_ERROR, cluster)
    for move in record.settled:
        for forecast in (move.left, move.joined):
            error = abs(forecast.realised - forecast.predicted)
            shown.observe(metrics.PREDICTION_ERROR, error, cluster)
    shown.set(metrics.PREDICTION_BIAS, record.bias, cluster)
    for outcome, number in record.closed.items():
        shown.count(metrics.FINISHED_MOVES, cluster, outcome, by=number)
    for cause in record.tripped:
        shown.count(metrics.BREAKER_TRIPS, cluster, cause)
    shown.set(metrics.BREAKER_OPEN, record.frozen_until > 0, cluster)


def _show_shadow(shown: Exposition, cluster: str, shadow: ShadowRecord | None) -> None:
    if shadow is None:
        shown.forget(metrics.SHADOW_RANGE, cluster)
        return
    for role, side in (("active", shadow.champion), ("shadow", shadow.challenger)):
        labels = (cluster, role, side.strategy)
        shown.count(metrics.SHADOW_MOVES, *labels, by=side.moves)
        shown.count(metrics.SHADOW_BOUNCES, *labels, by=side.bounces)
        # A round that asked no strategy has no range, and leaves the last one as it is.
        if side.range is not None:
            shown.forget(metrics.SHADOW_RANGE, cluster, role)
            shown.set(metrics.SHADOW_RANGE, side.range, *labels)


def show_outcomes(
    shown: Exposition,
    cluster: str,
    requests: Iterable[Transition],
    outcomes: Iterable[TransitionOutcome],
) -> None:
    for request, outcome in zip(requests, outcomes, strict=True):
        became = outcome.reason or "accepted"
        match request.event:
            case Event.TRANSFER | Event.UNLOAD:
                shown.count(metrics.MOVES, cluster, became)
            case Event.SPLIT:
                shown.count(metrics.SPLITS, cluster, became)
            case Event.MERGE:
                shown.count(metrics.MERGES, cluster, became)
            case event:
                shown.count(metrics.REPAIRS, cluster, event, became)
