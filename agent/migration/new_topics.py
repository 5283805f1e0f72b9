"""New topics that clients ask for while their scope migrates: they begin on the other cluster.

any thread       where does the topic go?  its record says so, or: ask again
agent's thread   write the records of all that are waited for, where nothing of that name is here
A client is sent away after that, never before: after a rollback the record is what keeps all of the
topic's clients together. If it is lost in between, as its writer crashed, the client asks again.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from typing import Final

import msgspec
import structlog

from agent.migration.guarded import GuardedPort
from agent.migration.port import AskAgain, CannotMigrate
from agent.migration.records import Keep, Records
from agent.ownership.holdings import Holdings
from trimtab.migration.migration import Target
from trimtab.migration.scopes import namespace_of
from trimtab.migration.topic_life import FORGETTABLE, MOST_NEW, TopicEvent, TopicState
from trimtab.model import LONGEST_NAME, Epoch, HashRange, parse_bundle
from trimtab.store.ring import clamped_position
from trimtab.wire.topics import TopicChange, TopicOutcome, TopicRefused

log = structlog.get_logger()

MOST_WAITING: Final = 1000
"""Names that wait for their record. More: a client that invents names delays the agent's other
work; fewer: many clients that come at once ask more often."""


class NewTopics:
    """One broker's. ``green_for`` is for any thread, ``start`` for the agent's."""

    def __init__(self, records: Records, holdings: Holdings) -> None:
        self._records, self._holdings = records, holdings
        self._waiting = set[str]()
        self._changing = threading.Lock()
        self._full = frozenset[str]()
        """Namespaces that may begin no further topic on green, as the store said since the last
        look. So it is not asked for each name that a client invents."""
        self._told = set[str]()
        """Those that the log has named."""

    @property
    def wait(self) -> bool:
        """Whether ``start`` has something to do."""
        return bool(self._waiting)

    def green_for(self, topic: str) -> Target | None:
        """`agent.agent.Agent.green_for`; raises AskAgain."""
        known = self._records.known
        target = known.green_for(topic)
        if target is not None or known.taking(topic) is None:
            return target
        if len(topic.encode(errors="replace")) > LONGEST_NAME:
            raise AskAgain(f"a topic whose name is above {LONGEST_NAME} bytes goes nowhere")
        if namespace_of(topic) in self._full:
            raise AskAgain("as many topics of its namespace as may have begun on the other cluster")
        with self._changing:
            if len(self._waiting) < MOST_WAITING:
                self._waiting.add(topic)
        raise AskAgain("it is not recorded yet that it begins on the other cluster")

    def start(self, broker: GuardedPort, keep: Keep) -> None:
        """Write the records of all that wait; raises StoreUnavailable and Closed."""
        with self._changing:
            names, self._waiting = sorted(self._waiting), set()
        if not names:
            return
        full = set[str]()
        for bundle, topics in by_bundle(names, self._holdings.bundles()).items():
            keep()
            answers = self._start_in(broker, bundle, topics, keep)
            full.update(
                namespace_of(each.topic) for each in answers if each.reason is TopicRefused.FULL
            )
        for namespace in sorted(full - self._told):
            log.warning(
                "no further topics begin on the other cluster: send their clients there",
                namespace=namespace,
                most=MOST_NEW,
            )
        self._full |= full
        self._told |= full

    def try_full(self) -> None:
        """Ask the store again for namespaces that were full: a migration may have ended."""
        self._full = frozenset()

    def _start_in(
        self, broker: GuardedPort, bundle: str, topics: list[str], keep: Keep
    ) -> tuple[TopicOutcome, ...]:
        epoch = self._holdings.epoch(bundle)
        if epoch is None:
            return ()
        self._records.read(bundle, keep)
        # While a migration takes new topics none is created here: what is not here now will not be.
        try:
            here = broker.list_topics(bundle).topics
        except CannotMigrate:
            # Their clients ask again.
            return ()
        new = (topic for topic in topics if topic not in here)
        changes = [each for topic in new for each in self._starting(bundle, epoch, topic)]
        return self._records.ask(bundle, *changes)

    def _starting(self, bundle: str, epoch: Epoch, topic: str) -> Iterator[TopicChange]:
        records = self._records
        migration, case = records.known.taking(topic), records.known.case_of(bundle, topic)
        if migration is None:
            return
        start = records.change(bundle, epoch, topic, TopicEvent.START_ON_GREEN, migration)
        if case is not None and case.record.state in FORGETTABLE:
            # Its users have deleted it meanwhile, and create it again.
            yield records.forget(bundle, epoch, topic, case.migration.id)
            start = msgspec.structs.replace(start, expect=TopicState.UNKNOWN)
        yield start


def by_bundle(topics: Iterable[str], bundles: Collection[str]) -> dict[str, list[str]]:
    """The topics of each bundle; those of none of them are left out."""
    ranges: defaultdict[str, list[tuple[HashRange, str]]] = defaultdict(list)
    for bundle in bundles:
        namespace, span = parse_bundle(bundle)
        ranges[namespace].append((span, bundle))
    found: defaultdict[str, list[str]] = defaultdict(list)
    for topic in topics:
        where = clamped_position(topic)
        for (low, high), bundle in ranges.get(namespace_of(topic), ()):
            if low <= where < high:
                found[bundle].append(topic)
    return dict(found)
