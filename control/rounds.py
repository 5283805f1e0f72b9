"""What trimtab.rounds has about clusters: their newest rounds, brokers and settings.

Read are the records of the hour before the newest one, and more if the job recorded what it was
started with before that; afterwards only what is new.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Final

import msgspec

from control.usage_history import RoundUsage, keep_usage
from simulation.replay.batch_records import BATCHES, decode_values
from simulation.replay.recorded import RecordedTopics
from trimtab.cluster.intents.apply import apply_intent
from trimtab.cluster.intents.flaws import FROM_ROUNDS
from trimtab.cluster.intents.settings import resolve_settings
from trimtab.cluster.job_settings import from_record
from trimtab.controls import NO_CONTROLS
from trimtab.kept_plans.kept_plan import KeptPlan
from trimtab.kept_plans.life import PlanState
from trimtab.migration.flaws import target_flaws
from trimtab.migration.kept import Migrations
from trimtab.migration.life import UNDER_WAY
from trimtab.migration.migration import Migration
from trimtab.nearby import nearby
from trimtab.policies import NO_POLICIES
from trimtab.reasons import Rule
from trimtab.settings import Settings
from trimtab.settings.setting import InvalidSettings
from trimtab.shedding import DEFAULTS
from trimtab.state.memory import Memory
from trimtab.wire import keys
from trimtab.wire.intent import Intent, IntentKind, decode_intent
from trimtab.wire.rounds import JobSettings, RoundRecord

_LATELY_MS: Final = 3_600_000
"""Most clusters hold a round every minute, and the job tells its settings every 15 minutes."""

_READ_LATE_MS: Final = 60_000
"""How long before a round the newest intent that it knew may have arrived."""

_KEPT: Final = 20
"""Rounds of a cluster that are kept whole. Fewer: less to look back at; more: memory, 1 MB each
with 10,000 brokers."""


class NoSuchCluster(LookupError):
    """No round of the cluster was recorded lately; the text names those that have some."""


@dataclass(frozen=True, slots=True)
class ClusterRounds:
    """A cluster's newest round, and what all of its rounds lately named."""

    query: str
    newest: RoundRecord
    regular: RoundRecord
    """The newest that was not only for repairs."""
    brokers: frozenset[str] = frozenset()
    """Named by any of them."""
    started: JobSettings | None = None
    """What the job was started with; None if that is no longer recorded."""
    latest: tuple[RoundRecord, ...] = ()
    """The last of them, the newest first."""
    usage: tuple[RoundUsage, ...] = ()
    """What more of them saw, the oldest first."""
    waiting: tuple[str, ...] = ()
    """The plans that wait for a person, the newest last."""
    migrations: tuple[Migration, ...] = ()
    """Migrations under way, as the job wrote them last."""

    def defaults(self) -> Settings:
        """The settings that the job was started with; the defaults where those are not recorded.
        Raises InvalidSettings if another version recorded them."""
        return DEFAULTS if self.started is None else from_record(self.started)[1]

    def settings(self) -> Settings:
        """The settings of its rounds, as far as this version knows them."""
        memory = Memory(overrides=dict(self.newest.overrides))
        with suppress(InvalidSettings):
            return resolve_settings(memory, self.defaults())[0]
        return DEFAULTS


@dataclass(slots=True)
class RoundFeed:
    """Reads trimtab.rounds: first what was recorded lately, then what is new. For one thread."""

    topics: RecordedTopics
    clusters: dict[str, ClusterRounds] = field(default_factory=dict)
    _started: dict[str, JobSettings] = field(default_factory=dict)
    _next: int | None = None
    """The offset to go on at."""

    def refresh(self) -> Mapping[str, ClusterRounds]:
        """Read what is new; the clusters by name. Raises what `RecordedTopics` raises."""
        if not [*self.topics.partitions(keys.ROUNDS)]:
            return self.clusters
        low, high = self.topics.whole(keys.ROUNDS)
        if self._next is None or not low <= self._next <= high:
            # The first look, or the topic was made again.
            self.clusters, self._started = {}, {}
            self._next = find_since(self.topics, low, high, _LATELY_MS)
            self._read(self._next, high)
            if any(each.query not in self._started for each in self.clusters.values()):
                self._look_back(low, self._next)
        else:
            self._read(self._next, high)
        return self.clusters

    def _read(self, start: int, end: int) -> None:
        self._next = start
        records = self.topics.between(keys.ROUNDS, 0, start, end)
        for whole, batch in decode_values(records, BATCHES):
            if batch.settings is not None:
                self._started[batch.query] = batch.settings
            for held in batch.rounds:
                self._take(batch.query, held)
            for plan in batch.plans:
                self._note(plan)
            for migration in batch.migrations:
                self._note_migration(migration)
            # The pieces of a value that is not there as a whole are read again.
            self._next = whole.end

    def _take(self, query: str, held: RoundRecord) -> None:
        before = self.clusters.get(held.cluster)
        extra = held.skipped == Rule.REPAIR_ONLY
        self.clusters[held.cluster] = ClusterRounds(
            query,
            held,
            before.regular if before and extra else held,
            (before.brokers if before else frozenset()).union(_named(held)),
            self._started.get(query),
            (held, *(before.latest if before else ()))[:_KEPT],
            keep_usage(before.usage if before else (), held),
            before.waiting if before else (),
            before.migrations if before else (),
        )

    def _note(self, plan: KeptPlan) -> None:
        """Note whether a plan waits for a person."""
        if (last := self.clusters.get(plan.cluster)) is not None:
            others = tuple(each for each in last.waiting if each != plan.id)
            new = (plan.id,) if plan.state is PlanState.PROPOSED else ()
            self.clusters[plan.cluster] = replace(last, waiting=others + new)

    def _note_migration(self, it: Migration) -> None:
        """Keep a migration while its topics change."""
        if (last := self.clusters.get(it.cluster)) is not None:
            others = tuple(each for each in last.migrations if each.id != it.id)
            new = (it,) if it.state in UNDER_WAY else ()
            self.clusters[it.cluster] = replace(last, migrations=others + new)

    def _look_back(self, start: int, end: int) -> None:
        """Find what the jobs were started with, further back."""
        records = self.topics.between(keys.ROUNDS, 0, start, end)
        found = [each for _, each in decode_values(records, msgspec.json.Decoder(_Beginning))]
        earlier = {each.query: each.settings for each in found if each.settings is not None}
        self._started = earlier | self._started
        self.clusters = {
            name: replace(each, started=self._started.get(each.query))
            for name, each in self.clusters.items()
        }


class _Beginning(msgspec.Struct):
    """The part of a BatchRecord that tells what a job was started with."""

    query: str
    settings: JobSettings | None = None


def find_cluster(clusters: Mapping[str, ClusterRounds], name: str) -> ClusterRounds:
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


def remember(topics: RecordedTopics, last: ClusterRounds) -> Memory:
    """The cluster's policies and changed settings: those of its last round, after the intents that
    Kafka got since. Some that the round knew are applied again, which changes nothing: each sets
    a value. Raises InvalidSettings, as `ClusterRounds.defaults` does, and SinkError.
    """
    newest, defaults = last.newest, last.defaults()
    memory = Memory(
        overrides=dict(newest.overrides),
        policies=newest.policies or NO_POLICIES,
        controls=newest.controls or NO_CONTROLS,
        migrations=Migrations(newest.green),
    )
    for partition in topics.partitions(keys.CONTROL):
        start = topics.offset_at(keys.CONTROL, partition, newest.at - _READ_LATE_MS)
        end = topics.end(keys.CONTROL, partition)
        for record in topics.between(keys.CONTROL, partition, start, end):
            with suppress(msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                intent = decode_intent(record.value or b"")
                if record.key != newest.cluster.encode():
                    continue
                if intent.kind is IntentKind.CLUSTER_MIGRATION:
                    memory = _with_green(memory, intent)
                elif intent.kind in FROM_ROUNDS:
                    memory = apply_intent(memory, intent, defaults, 0, record.at).memory
    return memory


def _with_green(memory: Memory, intent: Intent) -> Memory:
    """The memory with where the cluster's topics would go, if the job took that."""
    if intent.target is None or any(target_flaws(intent.target, ())):
        return memory
    return replace(memory, migrations=replace(memory.migrations, green=intent.target))


def find_since(topics: RecordedTopics, low: int, high: int, ms: int) -> int:
    """The offset of the first record that is not older than the newest by more than ``ms``."""
    newest = [record.at for record in topics.between(keys.ROUNDS, 0, max(low, high - 1), high)]
    if not newest:
        return low
    return max(low, topics.offset_at(keys.ROUNDS, 0, newest[-1] - ms))


def summarize(held: RoundRecord) -> dict[str, object]:
    """A round in a line: what it did, and the range of usage (fractions) at its start."""
    return {
        "round": held.round,
        "at": held.at,
        "strategy": held.strategy,
        "skipped": held.skipped,
        "moves": len(held.moves),
        "splits": len(held.splits),
        "merges": len(held.merges),
        "repairs": len(held.repairs),
        "range": held.summary.get("usage_range"),
        "problems": len(held.problems),
    }


def _named(held: RoundRecord) -> Iterable[str]:
    return (*held.usage, *held.gone, *held.draining, *held.held_back)
