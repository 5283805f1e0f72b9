"""What trimtab.rounds says of clusters lately: their brokers, and their settings by source.

Read are the records of the hour before the newest one, and more if the job recorded what it was
started with before that.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

import msgspec

from simulation.replay.recorded import RecordedTopics, decode_values
from trimtab.cluster.flaws import POLICIES
from trimtab.cluster.intents import apply_intent
from trimtab.nearby import nearby
from trimtab.policies import Policies
from trimtab.settings import Value
from trimtab.shedding import DEFAULTS
from trimtab.state.memory import Memory
from trimtab.wire import keys
from trimtab.wire.control import decode_intent
from trimtab.wire.rounds import JobSettings

_LATELY_MS: Final = 3_600_000
"""Most clusters hold a round every minute, and the job tells its settings every 15 minutes."""


_READ_LATE_MS: Final = 60_000
"""How long before a round the newest intent that it knew may have arrived."""


class NoSuchCluster(LookupError):
    """No round of the cluster was recorded lately; the text names those that have some."""


class _Round(msgspec.Struct, rename="camel"):
    """The part of a RoundRecord that is read here."""

    cluster: str
    round: int
    at: int
    usage: dict[str, float] = {}
    gone: tuple[str, ...] = ()
    draining: tuple[str, ...] = ()
    held_back: tuple[str, ...] = ()
    settings_version: int = 0
    overrides: dict[str, Value] = {}
    policies: Policies | None = None


class _Batch(msgspec.Struct):
    query: str
    rounds: tuple[_Round, ...] = ()
    settings: JobSettings | None = None


@dataclass(slots=True)
class LastRounds:
    """A cluster's newest round, and what all of its rounds lately named."""

    query: str
    round: int
    at: int
    """The batch timestamp of the newest round (epoch ms)."""
    settings_version: int
    overrides: Mapping[str, Value]
    """Settings that intents changed, by dotted name."""
    brokers: set[str] = field(default_factory=set)
    usage: Mapping[str, float] = field(default_factory=dict)
    """Of each broker of the newest round (fraction)."""
    draining: Collection[str] = ()
    held_back: Collection[str] = ()
    """Brokers that came back and got nothing in it."""
    policies: Policies | None = None
    """None if an earlier version recorded the round."""


def read_rounds(topics: RecordedTopics) -> tuple[dict[str, LastRounds], dict[str, JobSettings]]:
    """By cluster, its last rounds; by query, the settings that its job was started with.

    Raises what `RecordedTopics` raises.
    """
    if not [*topics.partitions(keys.ROUNDS)]:
        return {}, {}
    low, high = topics.whole(keys.ROUNDS)
    since = find_since(topics, low, high, _LATELY_MS)
    clusters, started = _read(topics, since, high)
    if any(each.query not in started for each in clusters.values()):
        started = _read(topics, low, since)[1] | started
    return clusters, started


def find_cluster(clusters: Mapping[str, LastRounds], name: str) -> LastRounds:
    """The last rounds of one cluster; raises NoSuchCluster."""
    found = clusters.get(name)
    if found is None and not clusters:
        raise NoSuchCluster(
            f"{name}: no round of any cluster is recorded: start a job (trimtab job), or see "
            "whether this is its Kafka (trimtab doctor)"
        )
    if found is None:
        raise NoSuchCluster(f"{name}: no round of this cluster lately; {nearby(name, clusters)}")
    return found


def read_policies(topics: RecordedTopics, cluster: str, last: LastRounds) -> Policies | None:
    """The cluster's policies: those of its last round, after the intents that Kafka got since; None
    if the round does not say.

    Some that the round knew are applied again, which changes nothing: each sets a policy.
    """
    if last.policies is None:
        return None
    memory = Memory(policies=last.policies)
    for partition in topics.partitions(keys.CONTROL):
        start = topics.offset_at(keys.CONTROL, partition, last.at - _READ_LATE_MS)
        end = topics.end(keys.CONTROL, partition)
        for record in topics.between(keys.CONTROL, partition, start, end):
            with suppress(msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                intent = decode_intent(record.value or b"")
                if record.key == cluster.encode() and intent.kind in POLICIES:
                    memory = apply_intent(memory, intent, DEFAULTS, 0, 0).memory
    return memory.policies


def find_since(topics: RecordedTopics, low: int, high: int, ms: int) -> int:
    """The offset of the first record that is not older than the newest by more than ``ms``."""
    newest = [record.at for record in topics.between(keys.ROUNDS, 0, max(low, high - 1), high)]
    if not newest:
        return low
    return max(low, topics.offset_at(keys.ROUNDS, 0, newest[-1] - ms))


def _read(
    topics: RecordedTopics, start: int, end: int
) -> tuple[dict[str, LastRounds], dict[str, JobSettings]]:
    clusters: dict[str, LastRounds] = {}
    started: dict[str, JobSettings] = {}
    decoder = msgspec.json.Decoder(_Batch)
    for _, batch in decode_values(topics.between(keys.ROUNDS, 0, start, end), decoder):
        if batch.settings is not None:
            started[batch.query] = batch.settings
        for held in batch.rounds:
            before = clusters.get(held.cluster)
            brokers = before.brokers if before is not None else set[str]()
            clusters[held.cluster] = LastRounds(
                batch.query,
                held.round,
                held.at,
                held.settings_version,
                held.overrides,
                brokers | _named(held),
                held.usage,
                held.draining,
                held.held_back,
                held.policies,
            )
    return clusters, started


def _named(held: _Round) -> set[str]:
    named: Iterable[str] = (*held.usage, *held.gone, *held.draining, *held.held_back)
    return set(named)
