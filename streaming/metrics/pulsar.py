"""Shows a round under the names that Pulsar's leader uses (`trimtab.metrics.pulsar`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from sinks.exposition import Exposition
from trimtab.metrics import pulsar
from trimtab.ownership import Event
from trimtab.reasons import Reason, Rule
from trimtab.wire.ownership import Transition, TransitionOutcome
from trimtab.wire.rounds import RoundRecord

SUCCESS: Final = "Success"
FAILURE: Final = "Failure"
SKIP: Final = "Skip"
UNKNOWN: Final = "Unknown"

UNLOAD_REASONS: Final[Mapping[str, str]] = {
    Reason.UNDERLOADED: "Underloaded",
    Reason.UNDER_AVERAGE_PEER: "Underloaded",
    Reason.ASKED: "Admin",
    Reason.DRAINED: "Admin",
}
"""Pulsar's reason of a move; of all others Overloaded."""
OVERLOADED: Final = "Overloaded"

SKIP_REASONS: Final[Mapping[str, str]] = {
    Rule.BALANCED: "HitCount",
    Rule.NO_PROPOSAL: "NoBundles",
    Rule.TOO_FEW_BROKERS: "NoBrokers",
    Rule.UNCOMPUTABLE: "NoLoadData",
    Rule.LEARNING: "NoLoadData",
    Rule.FROZEN: "CoolDown",
    Rule.AWAITING_OUTCOME: "CoolDown",
    Rule.CHANGING: "CoolDown",
}
"""Pulsar's reason of a round without moves; of all others Unknown."""

SPLIT_REASONS: Final[Mapping[str, str]] = {
    Reason.TOO_MANY_TOPICS: "Topics",
    Reason.TOO_MANY_SESSIONS: "Sessions",
    Reason.TOO_MANY_MESSAGES: "MsgRate",
    Reason.TOO_MUCH_TRAFFIC: "Bandwidth",
    Reason.ASKED: "Admin",
}
"""Pulsar's reason of a split; of all others Unknown."""


_UNLOADS: Final = frozenset({Event.TRANSFER, Event.UNLOAD})


def show_round(shown: Exposition, record: RoundRecord) -> None:
    """Show usage, and a round that moved nothing."""
    cluster = record.cluster
    labels = (pulsar.LOAD_BALANCING, pulsar.MAX_EMA)
    shown.set_brokers(pulsar.RESOURCE_USAGE, cluster, record.smoothed_usage, *labels)
    decided = (cluster, pulsar.LEADER, pulsar.UNLOADING)
    for stat, figure in (("avg", "usage_mean"), ("std", "usage_deviation")):
        value = record.summary.get(figure, 0.0)
        shown.set(pulsar.RESOURCE_USAGE_STATS, value, *decided, pulsar.MAX_EMA, stat)
    if not record.moves:
        reason = SKIP_REASONS.get(record.skipped, UNKNOWN)
        shown.count(pulsar.UNLOAD_BREAKDOWN, *decided, SKIP, reason)


def show_outcomes(
    shown: Exposition,
    cluster: str,
    requests: Iterable[Transition],
    outcomes: Iterable[TransitionOutcome],
) -> None:
    """Count moves and splits by what the ownership store said to them."""
    sources = set[str]()
    for request, outcome in zip(requests, outcomes, strict=True):
        if request.event in _UNLOADS:
            sources |= _count_unload(shown, cluster, request, outcome)
        elif request.event is Event.SPLIT:
            _count_split(shown, cluster, request, outcome)
    if sources:
        decided = (cluster, pulsar.LEADER, pulsar.UNLOADING)
        shown.count(pulsar.UNLOADED_BROKERS, *decided, by=len(sources))


def _count_unload(
    shown: Exposition, cluster: str, request: Transition, outcome: TransitionOutcome
) -> set[str]:
    """The broker that the bundle leaves, if it does."""
    decided = (cluster, pulsar.LEADER, pulsar.UNLOADING)
    if not outcome.accepted:
        shown.count(pulsar.UNLOAD_BREAKDOWN, *decided, FAILURE, UNKNOWN)
        return set()
    shown.count(pulsar.UNLOADED_BUNDLES, *decided)
    reason = UNLOAD_REASONS.get(request.commands[0].reason, OVERLOADED)
    shown.count(pulsar.UNLOAD_BREAKDOWN, *decided, SUCCESS, reason)
    return {command.source for command in request.commands if command.source is not None}


def _count_split(
    shown: Exposition, cluster: str, request: Transition, outcome: TransitionOutcome
) -> None:
    decided = (cluster, pulsar.LEADER, pulsar.SPLITTING)
    if not outcome.accepted:
        shown.count(pulsar.SPLIT_BREAKDOWN, *decided, FAILURE, UNKNOWN)
        return
    shown.count(pulsar.SPLIT_BUNDLES, *decided)
    reason = SPLIT_REASONS.get(request.commands[0].reason, UNKNOWN)
    shown.count(pulsar.SPLIT_BREAKDOWN, *decided, SUCCESS, reason)
