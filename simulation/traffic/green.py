"""What blue asks of green's admin interface, by Pulsar's paths and one of our own."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Final
from urllib.parse import quote

import msgspec

from agent.migration.port import CannotMigrate
from simulation.traffic.green_line import THERE, GreenLine, Refused, path_of
from simulation.traffic.pulsar_green import UNKNOWN_PATH, PulsarGreen
from sinks.green_access import NO_ACCESS, GreenAccess
from sinks.kafka.readable import MALFORMED
from trimtab.migration.migration import Target
from trimtab.store.lookup import parse_topic

_WANTS_BODY: Final = 412
"""Pulsar's answer to a tenant without one."""


class GivenBack(msgspec.Struct, frozen=True):
    """What green answers when it is asked to give a topic back."""

    ended: bool
    """False: it has taken a write, and keeps the topic."""
    subscriptions: tuple[str, ...] = ()
    """All that it had, those too that began there."""
    gone: str = ""
    """The web service to which a migration from there sends its clients, if one does."""


class _Stats(msgspec.Struct, frozen=True):
    """What is read of a topic's stats."""

    msgInCounter: int


class Green:
    """One other cluster, for one thread."""

    def __init__(
        self,
        target: Target,
        access: GreenAccess = NO_ACCESS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._line = GreenLine(target, access, clock)
        self._pulsar = PulsarGreen(self._line)
        self._made: set[str] = set()
        """Tenants and namespaces that are known to be there."""
        self._half_made: dict[str, set[str]] = {}
        """Topics that are not complete there, with what is: the next time goes on."""

    def create(self, topic: str, subscriptions: Iterable[str], *, begins: bool = True) -> None:
        """Create tenant, namespace, topic and subscriptions from the first message on; raises
        CannotMigrate, and goes on when it is called again. ``begins``: blue takes its writes still,
        so green must have no message of it."""
        self._line.begin()
        self._make_room(topic)
        there = self._half_made.setdefault(topic, set())
        path, owner = path_of(topic), ""
        if path not in there:
            made = self._line.ask("PUT", path)
            owner = made.host
            if made.status == THERE:
                if begins:
                    self._check_empty(topic, owner)
                self._pulsar.open_again(topic)
            there.add(path)
        for name in subscriptions:
            own = f"{path}/subscription/{quote(name, safe='')}"
            if own not in there:
                self._subscribe(topic, own, owner)
                there.add(own)
        del self._half_made[topic]

    def _make_room(self, topic: str) -> None:
        """Create tenant and namespace."""
        _, namespace = parse_topic(topic)
        tenant, space = f"tenants/{namespace.split('/')[0]}", f"namespaces/{namespace}"
        if tenant not in self._made:
            try:
                self._line.ask("PUT", tenant)
            except Refused as error:
                if error.status != _WANTS_BODY:
                    raise
                self._line.ask("PUT", tenant, self._pulsar.tenant_body())
            self._made.add(tenant)
        if space not in self._made:
            self._line.ask("PUT", space)
            self._made.add(space)

    def _subscribe(self, topic: str, path: str, owner: str) -> None:
        try:
            self._line.ask("PUT", path, b'"earliest"', owner)
        except Refused:
            # Pulsar keeps no subscription of these: a client makes it.
            if not topic.startswith("non-persistent:"):
                raise

    def give_back(self, topic: str, home: Target) -> GivenBack:
        """Have green end the topic, unless it has taken a write of it; raises CannotMigrate."""
        self._line.begin()
        self._half_made.pop(topic, None)
        asked = msgspec.json.encode(home)
        try:
            answer = self._line.ask("POST", f"{path_of(topic)}/give-back", asked)
        except Refused as error:
            if error.status not in UNKNOWN_PATH:
                raise
            names = self._pulsar.end(topic)
            return GivenBack(ended=names is not None, subscriptions=names or ())
        try:
            return msgspec.json.decode(answer.body, type=GivenBack)
        except MALFORMED as error:
            raise CannotMigrate(f"green does not say whether it has ended it: {error}") from error

    def _check_empty(self, topic: str, owner: str) -> None:
        """Raise CannotMigrate if a topic that green has already was written there: those messages
        would come before blue's, and a producer of the same name would count as having sent its
        next ones."""
        answer = self._line.ask("GET", f"{path_of(topic)}/stats", first=owner)
        try:
            messages = msgspec.json.decode(answer.body, type=_Stats).msgInCounter
        except MALFORMED as error:
            raise CannotMigrate(f"green does not say whether it has messages: {error}") from error
        if messages or self._pulsar.is_written(topic):
            many = f"with {messages} messages" if messages else "that had messages"
            raise CannotMigrate(
                f"green has a topic of this name {many} that are not from here: "
                "delete it there (pulsar-admin topics delete), or leave it out of the scope"
            )
