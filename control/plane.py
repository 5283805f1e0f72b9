"""One connection to Kafka and Redis through which people see and steer their clusters."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from threading import Lock
from types import TracebackType
from typing import Final, Self

import msgspec
import numpy as np

from agent.lookup.server import Lookup
from agent.lookup.settling import LookupSettings
from control.changed_reports import read_reports
from control.demand import Demand, read_demand, whole_load
from control.heat_map import HeatMap, Part, draw
from control.intents import Objections, note, object_to
from control.listing import (
    BrokerRow,
    BundleRow,
    Wanted,
    find_bundle,
    list_brokers,
    list_bundles,
    read_namespace,
)
from control.migration.check import Blue, find_migration
from control.migration.waiting_bundles import WaitingBundles
from control.reports import newest_values
from control.resources import ResourceFeed
from control.rounds import ClusterRounds, RoundFeed, find_cluster, remember
from control.what_if import Fleet, owned
from simulation.replay.recorded import RecordedTopics
from sinks.kafka.publisher import Outgoing, Publisher
from sinks.redis.answers.explanations import Explanations, Found
from sinks.redis.answers.kept_plans import KeptPlans
from sinks.redis.answers.outcomes import Outcomes
from sinks.redis.bundle_index import BundleIndex
from sinks.redis.leasing.leases import Leases
from sinks.redis.migrations import Migrations
from sinks.redis.ownership_store import OwnershipStore
from sinks.redis.server.connections import address, redis_client
from sinks.redis.service_urls import UrlStore
from sinks.redis.topics import TopicStore
from streaming.config import JobConfig
from trimtab.cluster.intents.existing import Existing
from trimtab.cluster.intents.migrations import MIGRATIONS
from trimtab.cluster.plans.drains import DRAIN_PLANS
from trimtab.migration.flaws import hosts_of
from trimtab.migration.kept import Migrations as KeptMigrations
from trimtab.migration.scopes import namespace_of
from trimtab.nearby import nearby
from trimtab.state.memory import Memory
from trimtab.wire.intent import Intent
from trimtab.wire.intent_outcome import IntentOutcome
from trimtab.wire.keys import CONTROL
from trimtab.wire.lookup import ServiceUrls
from trimtab.wire.ownership import Record
from trimtab.wire.rounds import RoundRecord

_PROMPT: Final = {"fetch.wait.max.ms": "10"}
"""A fetch that waits for new records delays the next read from elsewhere by as long."""
_FRESH_S: Final = 0.2
"""How long the last rounds are not read again. Shorter: more load on Kafka; longer: older answers.
"""
_ASKER: Final = "trimtab-api"
"""Names the requests by which lookups here give bundles to brokers."""
_LOOK_S: Final = 0.2
"""Between two looks at an outcome. Shorter: more load on Redis; longer: the answer comes later."""


class ControlPlane:
    """Any number of threads may use it. All methods raise SinkError; those about one cluster also
    NoSuchCluster. Nothing is connected before it is needed."""

    def __init__(self, settings: JobConfig, clock: Callable[[], float] = time.monotonic) -> None:
        kafka = settings.kafka
        self._clock, self._access = clock, settings.green
        # The rounds have a consumer of their own, which stays where it is.
        self._rounds, self._topics = (
            RecordedTopics(kafka.bootstrap, {**_PROMPT, **kafka.client}) for _ in range(2)
        )
        self._feed = RoundFeed(self._rounds)
        self._read_at = -math.inf
        self._following = Lock()
        self._reading = Lock()
        self._looking = Lock()
        self._lookups: dict[str, Lookup] = {}
        self._resources = ResourceFeed(kafka.bootstrap, kafka.client)
        self._publisher = Publisher(kafka.bootstrap, kafka.client)
        self._redis = redis_client(settings.redis_url.get_secret_value())
        self.store = OwnershipStore(self._redis)
        self.index = BundleIndex(self._redis)
        self.urls = UrlStore(self._redis)
        self.plans = KeptPlans(self._redis)
        self.migrations, self.topics = Migrations(self._redis), TopicStore(self._redis)
        self.waiting = WaitingBundles(self.migrations, self.store, Leases(self._redis))
        self._whys = Explanations(self._redis)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the connections."""
        self._resources.close()
        self._rounds.close()
        self._topics.close()
        self._redis.close()

    @property
    def redis(self) -> str:
        """Redis's address, without user or password."""
        return address(self._redis)

    def clusters(self) -> Mapping[str, ClusterRounds]:
        """The clusters of the last rounds, by name."""
        with self._following:
            now = self._clock()
            if now - self._read_at >= _FRESH_S:
                self._feed.refresh()
                self._read_at = now
            return dict(self._feed.clusters)

    def cluster(self, name: str) -> ClusterRounds:
        """The last rounds of one cluster."""
        return find_cluster(self.clusters(), name)

    def memory(self, last: ClusterRounds) -> Memory:
        """Its policies and changed settings as of now; raises InvalidSettings if another version
        recorded what its job was started with."""
        with self._reading:
            return remember(self._topics, last)

    def brokers(
        self, last: ClusterRounds, after: str = "", most: int | None = None
    ) -> list[BrokerRow]:
        """The brokers of the newest round, the busiest first: the first ``most`` after one."""
        return list_brokers(last.newest, self.store, after, most)

    def heat_map(self, last: ClusterRounds, part: Part) -> HeatMap:
        """The usage of brokers, or of failure domains, over the last rounds."""
        return draw(last, part, self.store)

    def resources(
        self, last: ClusterRounds, brokers: Collection[str]
    ) -> dict[str, dict[str, float]]:
        """What each resource adds to the usage of brokers, of those whose reports are known yet."""
        return self._resources.read(last.newest.cluster, brokers, last.settings().weights)

    def bundles(
        self, cluster: str, wanted: Wanted, after: str, most: int
    ) -> tuple[list[BundleRow], bool]:
        """The first ``most`` wanted bundles after ``after``, by name; whether there are more."""
        found = list(islice(list_bundles(cluster, wanted, after, self.store, self.index), most + 1))
        return found[:most], len(found) > most

    def bundle(self, cluster: str, name: str) -> BundleRow | None:
        """One bundle's record; None if there is none."""
        return find_bundle(cluster, name, self.store)

    def explanation(self, cluster: str, subject: str, number: int | None = None) -> Found:
        """Why a round did what it did with a bundle or broker, or the newest that explains it."""
        return self._whys.read(cluster, subject, number)

    def explained(self, cluster: str) -> list[str]:
        """All bundles and brokers that stored rounds explain."""
        return self._whys.subjects(cluster)

    def fleet(self, last: ClusterRounds) -> Fleet:
        """The present fleet, to try changes on. Raises InvalidSettings as `memory` does."""
        cluster, memory = last.newest.cluster, self.memory(last)
        brokers = sorted({*last.newest.usage} - {*last.newest.gone})
        reports = read_reports(self.report_values(last, brokers))
        return Fleet(
            cluster=cluster,
            reports=reports,
            records=owned(self.store.records(cluster), reports),
            settings=last.settings().changed({"round.observe_only": False}),
            policies=memory.policies,
            now_ms=last.newest.at,
        )

    def demand(self, cluster: str, days: float) -> list[Demand]:
        """How much its brokers were used in the rounds of the last days, the oldest first."""
        with self._reading:
            return read_demand(self._topics, cluster, days)

    def rounds(self, cluster: str) -> list[RoundRecord]:
        """The last rounds of a cluster, the newest first."""
        return [*self.cluster(cluster).latest]

    def find_absence(self, cluster: str, wanted: Wanted) -> str:
        """Why a list of bundles is empty: its broker or namespace is not known; "" if both are.

        Raises NoSuchCluster, as other lists of the cluster do.
        """
        brokers = self.cluster(cluster).brokers
        if wanted.broker and wanted.broker not in brokers:
            return f"{wanted.broker}: no such broker lately; {nearby(wanted.broker, brokers)}"
        namespaces = self.index.namespaces(cluster)
        if wanted.namespace and wanted.namespace not in namespaces:
            near = nearby(wanted.namespace, namespaces)
            return f"{wanted.namespace}: no namespace that has bundles; {near}"
        return ""

    def lookup(self, cluster: str) -> Lookup:
        """Answers lookups of a cluster's topics as any of its brokers would."""
        with self._looking:
            if cluster not in self._lookups:
                settings = LookupSettings(cluster, _ASKER)
                self._lookups[cluster] = Lookup(settings, self._redis, np.random.default_rng())
            return self._lookups[cluster]

    def records(self, cluster: str, namespace: str) -> dict[str, Record]:
        """The records of a namespace's bundles, in ring order."""
        return read_namespace(cluster, namespace, self.store, self.index)

    def report_values(self, last: ClusterRounds, brokers: Collection[str]) -> dict[str, bytes]:
        """The newest load report of each broker, as it stands in Kafka."""
        with self._reading:
            return newest_values(self._topics, last.newest.cluster, brokers, last.newest.at)

    def check(self, intent: Intent) -> list[str]:
        """What is worth a note about an intent; raises Objections if the job would refuse it."""
        last = self.cluster(intent.cluster)
        memory = self.memory(last)
        if intent.plan or intent.kind in DRAIN_PLANS:
            memory = replace(memory, plans=tuple(self.plans.list(intent.cluster)))
        urls: tuple[ServiceUrls, ...] = ()
        if intent.kind in MIGRATIONS:
            kept = self._kept_migrations(memory, last)
            urls = tuple(self.urls.read_all(intent.cluster, sorted(last.brokers)))
            memory = replace(memory, migrations=kept, appended=where_they_listen(last, urls))
        existing = Existing(
            brokers=lambda: last.brokers,
            namespaces=lambda: self.index.namespaces(intent.cluster),
            records=lambda namespace: self.records(intent.cluster, namespace),
        )
        left = partial(self._left_on_green, intent.cluster)
        has = partial(self._has_record, intent.cluster)
        blue = Blue(memory.appended, urls, existing.namespaces, memory.migrations, left, has)
        migration = find_migration(intent, blue, self._access)
        flaws = list(object_to(intent, last, memory, existing))
        flaws += migration.flaws() if migration is not None else ()
        if flaws:
            raise Objections(flaws)
        notes = list(note(intent, last, memory, existing))
        if migration is not None:
            full = last.settings().round.overloaded_threshold
            notes += migration.notes(whole_load(last.regular.summary), full)
        return notes

    def _left_on_green(self, cluster: str, namespace: str, topics: Sequence[str]) -> set[str]:
        found = self.topics.named(cluster, namespace, topics)
        return {topic for topic, record in found.items() if record.stays}

    def _has_record(self, cluster: str, topic: str) -> bool:
        return bool(self.topics.named(cluster, namespace_of(topic), [topic]))

    def migrations_of(self, last: ClusterRounds) -> KeptMigrations:
        """The cluster's migrations, and where its topics would go."""
        return self._kept_migrations(self.memory(last), last)

    def _kept_migrations(self, memory: Memory, last: ClusterRounds) -> KeptMigrations:
        """The migrations that the store has."""
        items = tuple(reversed(self.migrations.read(last.newest.cluster).values()))
        return replace(memory.migrations, items=items)

    def send(self, intent: Intent) -> None:
        """Return once Kafka has the intent."""
        self._publisher.publish([Outgoing(CONTROL, intent.cluster, msgspec.json.encode(intent))])

    def outcome(
        self, cluster: str, intent: str, wait_s: float = 0.0, *, accepted: bool = False
    ) -> IntentOutcome | None:
        """An intent's outcome: waits ``wait_s`` for the final outcome, or with ``accepted`` for
        any; then returns what is known."""
        outcomes, until = Outcomes(self._redis), self._clock() + wait_s
        while True:
            found = outcomes.read(cluster, intent)
            left = until - self._clock()
            if (found is not None and (found.final or accepted)) or left <= 0:
                # The next reader of the rounds must see its effect.
                with self._following:
                    self._read_at = -math.inf
                return found
            time.sleep(min(left, _LOOK_S))


def where_they_listen(last: ClusterRounds, urls: Iterable[ServiceUrls]) -> dict[str, int]:
    """The brokers' ids and the host:port of each of their URLs, as `Memory.appended` has ids."""
    hosts = {host for each in urls for url in each.all() for host in hosts_of(url)}
    return dict.fromkeys(hosts.union(last.brokers), 0)
