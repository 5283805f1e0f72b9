"""Answers which broker serves a topic; any broker can: docs/lookup.md.

find the topic's bundle on the ring, by cached edges           no round trip
read the bundle's record                                       one
a broker serves it: answer that broker, with its service URLs
no broker does: settle that, one thread for all with the same question
the bundle no longer exists: read the edges again, and repeat all this once

No answer is unsafe: a broker serves by its own lease and records, or refuses. So a record is
trusted as read, and an owner's lease is checked only if a client comes back from it (``avoid``), or
before its bundle is given to another.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from functools import partial
from typing import Final

import numpy as np
from redis import Redis

from agent.clock import watch_server_time
from agent.lookup.claiming import Claims
from agent.lookup.directory import Directory
from agent.lookup.edges import Edges, UnknownNamespace
from agent.lookup.moved import MovedTopics
from agent.lookup.settling import LookupSettings, Question, Settler
from agent.lookup.single_flight import SingleFlight
from sinks.errors import UNOPENED, Closed, Misconfigured, Unavailable
from sinks.redis.bundle_index import BundleIndex
from sinks.redis.cluster_gate import ClusterGate
from sinks.redis.hints import PlacementHints
from sinks.redis.leasing.leases import Leases
from sinks.redis.ownership_store import OwnershipStore
from sinks.redis.service_urls import UrlStore
from sinks.redis.topics import TopicStore
from trimtab.store.lookup import STEPS, LookupAction, NotTiling, parse_topic
from trimtab.store.ring import position
from trimtab.wire.lookup import (
    Answer,
    Avoid,
    Cause,
    answer_failed,
    answer_migrated,
    answer_retry,
)

OPEN_FOR_S: Final = 1.0
"""How long a store that was found open is assumed open; its scripts check every time."""


class Lookup:
    """Answers lookups; any number of threads may use it, sharing ``client``."""

    def __init__(  # noqa: PLR0913 - its settings, its link, and its clocks
        self,
        settings: LookupSettings,
        client: Redis,
        rng: np.random.Generator,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
        server_ms: Callable[[], int | None] | None = None,
    ) -> None:
        """``server_ms``: Redis's time by a clock of this machine, if something else, such as the
        agent, has watched it for long; None: this watches it from its first lookup on."""
        self._cluster = settings.cluster
        self._clock = clock
        self._gate = ClusterGate(client)
        self._store = OwnershipStore(client)
        self._leases = Leases(client)
        self._edges = Edges(settings.cluster, BundleIndex(client))
        self._server_time = watch_server_time()
        claims = Claims(
            settings.cluster,
            settings.broker,
            self._store,
            PlacementHints(client),
            rng,
            clock,
            server_ms or self._watched_server_ms,
        )
        directory = Directory(settings.cluster, UrlStore(client), clock)
        self._settler = Settler(
            settings, self._store, self._leases, claims, directory, clock, sleep
        )
        self._flights: SingleFlight[Question, Answer | None] = SingleFlight()
        self._moved = MovedTopics(settings.cluster, TopicStore(client), clock)
        self._open_until = -math.inf

    def lookup(
        self,
        topic: str,
        *,
        authoritative: bool = False,
        avoid: Avoid | None = None,
        here: bool = False,
    ) -> Answer:
        """Answer a lookup within the settings' patience, plus the time of the store's answers.

        ``authoritative``: decide here, overriding the settings. ``avoid``: the place that an
        earlier answer named, where the client was not served. ``here``: answer the owner in this
        cluster, though clients are sent to another one: it says what became of the topic.
        """
        try:
            name, namespace = parse_topic(topic)
            where = position(name)
        except ValueError as error:
            return answer_failed(Cause.BAD_TOPIC, f"{error}; give the topic's whole name")
        try:
            target = None if here else self._moved.find(name, namespace)
            if target is not None:
                return answer_migrated(target)
            answer = self._answer(namespace, where, authoritative, avoid)
            if answer.cause is Cause.UNKNOWN_NAMESPACE and not here:
                target = self._moved.taken_over(name)
            return answer if target is None else answer_migrated(target)
        except Closed as error:
            return answer_retry(Cause.STORE_CLOSED, str(error))
        except (Unavailable, Misconfigured) as error:
            # A revoked right may be granted again, as a server may come back.
            # The next server to answer may be another one.
            self._open_until = -math.inf
            return answer_retry(Cause.STORE_UNAVAILABLE, str(error))

    def _answer(
        self, namespace: str, where: int, authoritative: bool, avoid: Avoid | None
    ) -> Answer:
        if self._clock() >= self._open_until:
            self._require_open()
        for indexed in (False, True):
            bundle = self._bundle_at(namespace, where, indexed)
            if isinstance(bundle, Answer):
                return bundle
            record = self._store.record(self._cluster, bundle)
            if record is not None and avoid is None and STEPS[record.state] is LookupAction.SERVED:
                return self._settler.connect(bundle, record)
            asked = Question(bundle, authoritative, avoid, indexed)
            answer = self._flights.run(asked, partial(self._settler.answer, asked))
            if answer is not None:
                return answer
        return answer_retry(Cause.DIVIDED, f"{namespace} is being divided or merged")

    def _require_open(self) -> None:
        """Raise Closed unless the store is open."""
        self._open_until = -math.inf
        if not self._gate.is_open(self._cluster):
            raise Closed(f"{self._cluster} is closed: {UNOPENED}")
        self._look_at_the_clock()
        self._open_until = self._clock() + OPEN_FOR_S

    def _look_at_the_clock(self) -> None:
        before = self._clock()
        server_s = self._leases.server_time()
        self._server_time.look(before, server_s, self._clock())

    def _watched_server_ms(self) -> int | None:
        self._look_at_the_clock()
        return self._server_time.estimate_ms(self._clock())

    def _bundle_at(self, namespace: str, where: int, afresh: bool) -> str | Answer:
        try:
            return self._edges.bundle_at(namespace, where, afresh=afresh)
        except (UnknownNamespace, NotTiling) as error:
            # A closed store's missing bundles may still be restored.
            self._require_open()
            cause = Cause.NOT_TILING if isinstance(error, NotTiling) else Cause.UNKNOWN_NAMESPACE
            return answer_failed(cause, f"{namespace}: {error}")
