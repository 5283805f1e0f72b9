"""A broker's port for migrations, as the agent calls it: no defect of a broker ends the agent.

An exception that the port does not name is a defect in the broker's code. It is raised as a
CannotMigrate, so that it fails one step of one topic, and its traceback is logged once for each
place where it arises: a defect may hit every topic.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from traceback import walk_tb
from typing import Final, NamedTuple

import structlog

from agent.migration.port import CannotMigrate, Migrating
from trimtab.migration.migration import Target
from trimtab.store.lookup import parse_topic

log = structlog.get_logger()

_MOST_TOLD: Final = 1000
"""Names that the log has and that are not said again. More: memory; fewer: they are said twice."""


class Listed(NamedTuple):
    """The topics of a bundle, as a broker names them."""

    topics: frozenset[str]
    wrong: frozenset[str]
    """Names that are no whole name of a topic, as ``t/ns/x`` for ``persistent://t/ns/x``. Scopes
    and clients would not find the topic under it."""


class GuardedPort:
    """Implements `agent.migration.port.Migrating`; all methods raise CannotMigrate alone."""

    def __init__(self, broker: Migrating) -> None:
        self._broker = broker
        self._told = set[object]()

    def list_topics(self, bundle: str) -> Listed:
        """The topics of a bundle, those apart whose names are the broker's mistake."""
        named = self.topics_of(bundle)
        wrong = frozenset(name for name in named if not _is_whole(name))
        for name in sorted(wrong):
            if self._is_news(name):
                log.error(
                    "the broker gave a topic without its full name: it cannot migrate, and no "
                    "migration of its bundle is completed",
                    topic=name,
                    bundle=bundle,
                    whole="persistent://tenant/namespace/topic",
                )
        return Listed(named - wrong, wrong)

    def topics_of(self, bundle: str) -> frozenset[str]:
        with self._guard(bundle):
            return frozenset(self._broker.topics_of(bundle))

    def create_on(self, target: Target, topic: str) -> None:
        with self._guard(topic):
            self._broker.create_on(target, topic)

    def hold(self, topic: str) -> None:
        with self._guard(topic):
            self._broker.hold(topic)

    def terminate(self, topic: str, target: Target) -> None:
        with self._guard(topic):
            self._broker.terminate(topic, target)

    def replication_backlog(self, topic: str) -> Mapping[str, int]:
        with self._guard(topic):
            return dict(self._broker.replication_backlog(topic))

    def backlog(self, topic: str) -> Mapping[str, int]:
        with self._guard(topic):
            return dict(self._broker.backlog(topic))

    def redirect(self, topic: str, subscription: str, target: Target) -> None:
        with self._guard(topic):
            self._broker.redirect(topic, subscription, target)

    def remove(self, topic: str, target: Target) -> None:
        with self._guard(topic):
            self._broker.remove(topic, target)

    def take_back(self, topic: str, target: Target) -> bool:
        with self._guard(topic):
            return self._broker.take_back(topic, target)

    def release(self, topic: str) -> None:
        with self._guard(topic):
            self._broker.release(topic)

    def reopen(self, topic: str) -> None:
        with self._guard(topic):
            self._broker.reopen(topic)

    @contextmanager
    def _guard(self, subject: str) -> Iterator[None]:
        """``subject``: the topic, or the bundle, that the call is about."""
        try:
            yield
        except CannotMigrate:
            raise
        except Exception as error:
            *_, (frame, line) = walk_tb(error.__traceback__)
            if self._is_news((type(error), frame.f_code.co_filename, line)):
                log.exception("the broker's code failed in a migration", subject=subject)
            kind = type(error).__name__
            raise CannotMigrate(
                f"the broker's code failed, see its log: {kind}: {error}"
            ) from error

    def _is_news(self, what: object) -> bool:
        if len(self._told) >= _MOST_TOLD:
            self._told.clear()
        is_news = what not in self._told
        self._told.add(what)
        return is_news


def _is_whole(name: str) -> bool:
    try:
        # Bytes that are no text stand in a name as what cannot be encoded.
        name.encode()
        return parse_topic(name)[0] == name
    except ValueError:
        return False
