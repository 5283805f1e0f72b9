"""A broker whose topics can migrate: what the agent asks of it, as changes of the log.

Each change is one transaction under the bundle's token, so it is final for the bundle's next owner,
and clients are told after it. What the agent repeats for a bundle that it does not serve yet,
as its last owner may have crashed before it was written, is kept and done with the first change.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Final

from agent.migration.port import AskAgain, CannotMigrate, TopicGone, TopicLost
from agent.reports.host import HostUsage
from simulation.traffic.attached import Key
from simulation.traffic.broker import TrafficBroker
from simulation.traffic.desk import withheld
from simulation.traffic.frames import Migrated, Part
from simulation.traffic.green import GivenBack, Green
from simulation.traffic.standing import IllegalStep, Standing, Step
from simulation.traffic.topic_log import Fenced, Topic, TopicLog
from sinks.green_access import NO_ACCESS, GreenAccess
from trimtab.migration.flaws import hosts_of
from trimtab.migration.migration import Target

REPLICATOR: Final = "pulsar.repl."
"""Begins the names of subscriptions by which other regions read, as Pulsar's do; the rest is the
name of the region's cluster."""


class MigratingBroker(TrafficBroker):
    """Implements `agent.migration.port.Migrating` too."""

    def __init__(  # noqa: PLR0913 - as what it extends, and where its cluster is
        self,
        log: TopicLog,
        own: Sequence[str],
        host: Callable[[], HostUsage],
        web_url: str = "",
        pulsar_url: str = "",
        home: Target = Target(),  # noqa: B008 - a value
        access: GreenAccess = NO_ACCESS,
    ) -> None:
        """``home``: its own cluster's URLs, where clients go that green gives back; ``access``: the
        token and certificate for green."""
        super().__init__(log, own, host, web_url, pulsar_url)
        self.home, self._access = home, access
        self._greens: dict[Target, Green] = {}
        self._asked_of = ""
        """The topic that green is being asked for. If this broker gets a request for it meanwhile,
        the request is its own, by a way that hides it: green is blue."""

    @property
    def cluster(self) -> str:
        """Its cluster's name."""
        return self.desk.log.cluster

    @property
    def peers(self) -> list[str]:
        """The ids of its cluster's brokers, as it was started with them: alive or not."""
        return sorted(hosts_of(self.home.serviceUrl))

    def topics_of(self, bundle: str) -> list[str]:
        with self.desk.lock:
            self._restore(bundle)
            names = self.desk.log.names(bundle)
        return [name for name, standing in names.items() if standing is not Standing.REMOVED]

    def create_on(self, target: Target, topic: str) -> None:
        with self._changing(topic) as known:
            subscriptions = tuple(self.desk.log.backlogs(known))
        # One that ended here has its producers there, though its record may be lost.
        begins = known.standing is Standing.ACTIVE
        with self._asking(topic):
            self._green(target).create(topic, subscriptions, begins=begins)

    def hold(self, topic: str) -> None:
        with self.desk.lock:
            known = self.desk.log.look(topic)
            removed = known is not None and known.standing is Standing.REMOVED
            if removed and self.desk.token(topic) is not None:
                raise CannotMigrate(f"{topic} was given back to another cluster meanwhile")
            self.desk.withheld.add(topic)
            self.desk.attached.answer_producers(topic, lambda name: withheld(Key(topic, name)))

    def terminate(self, topic: str, target: Target) -> None:
        after = self._step(topic, Step.TERMINATE, target)
        if after is not None:
            with self.desk.lock:
                answer = partial(self.desk.moved, after)
                self.desk.attached.answer_producers(topic, answer)

    def replication_backlog(self, topic: str) -> dict[str, int]:
        return {
            name.removeprefix(REPLICATOR): messages
            for name, messages in self.backlog(topic).items()
            if name.startswith(REPLICATOR)
        }

    def backlog(self, topic: str) -> dict[str, int]:
        with self._changing(topic) as known:
            return self.desk.log.backlogs(known)

    def redirect(self, topic: str, subscription: str, target: Target) -> None:
        with self._changing(topic) as known:
            self.desk.log.release(known, subscription)
        with self.desk.lock:
            self.desk.attached.redirect(Migrated(topic, subscription, Part.CONSUMER, target))

    def remove(self, topic: str, target: Target) -> None:
        after = self._step(topic, Step.REMOVE, target)
        if after is not None:
            self._send_all_to(after)

    def take_back(self, topic: str, target: Target) -> bool:
        self._check_lost(target, topic)
        with self._asking(topic):
            given = self._green(target).give_back(topic, self.home)
        if given.gone:
            raise TopicGone(given.gone)
        if given.ended:
            with self._changing(topic) as known:
                for name in given.subscriptions:
                    self.desk.log.subscribe(known, name, known.next)
        return given.ended

    def _check_lost(self, target: Target, topic: str) -> None:
        """Raise TopicLost if this cluster's file has nothing of a topic of a bundle that is served:
        made again, it would give its entries numbers that consumers have seen."""
        with self.desk.lock:
            if self.desk.token(topic) is None or self.desk.log.look(topic) is not None:
                return
        with self._asking(topic):
            self._green(target).create(topic, (), begins=False)
        raise TopicLost(f"{topic} is not in the file of {self.cluster}")

    def release(self, topic: str) -> None:
        with self.desk.lock:
            self.desk.withheld.discard(topic)

    def reopen(self, topic: str) -> None:
        self._step(topic, Step.REOPEN, Target())

    # What green does for blue

    def give_back(self, topic: str, target: Target) -> GivenBack:
        """End the topic here and send its clients to ``target``, unless it has taken a write, or
        has gone on to another cluster, which may have; then nothing changes. What ends is told with
        its subscriptions, each time again: the answer may be lost."""
        log = self.desk.log
        if topic == self._asked_of:
            # Nothing was written elsewhere: it is served here again.
            return GivenBack(ended=True)
        with self.desk.lock:
            is_here = log.look(topic) is not None
            with self._changing(topic, make=True) as known:
                gone = self._gone_on(known, target, is_here=is_here)
                if gone is not None or known.written:
                    return GivenBack(ended=False, gone="" if gone is None else gone.web)
                after = self._give_up(known, target)
                names = log.subscriptions(after)
        self._send_all_to(after)
        return GivenBack(ended=True, subscriptions=names)

    def _give_up(self, topic: Topic, target: Target) -> Topic:
        after = self.desk.log.step(topic, Step.TERMINATE, target)
        return self.desk.log.step(after, Step.REMOVE, target)

    def _gone_on(self, topic: Topic, home: Target, *, is_here: bool) -> Target | None:
        """Where the topic's clients are sent if that is not ``home``, by the file or by the record,
        which is written first; raises CannotMigrate while they may be soon. ``is_here``: the file
        knew of it before."""
        if topic.standing is not Standing.ACTIVE:
            return None if is_same_cluster(topic.urls, home) else topic.urls
        if topic.name in self.desk.withheld:
            raise CannotMigrate(f"{topic.name} is about to go on to another cluster")
        try:
            return self._green_for(topic.name)
        except AskAgain as error:
            if is_here:
                # New ones begin elsewhere; this one does not.
                return None
            raise CannotMigrate(str(error)) from error

    def create(self, topic: str) -> bool:
        """Make the topic, or make it again after it was given back; whether it was not there.
        Raises CannotMigrate too for what must not be handed over: a topic whose clients are sent
        elsewhere, who would go round in a circle, and one that was used here before."""
        if topic == self._asked_of:
            raise CannotMigrate("it would come from here: green is the cluster that is left")
        with self.desk.lock:
            is_here = self.desk.log.look(topic) is not None
            with self._changing(topic, make=True) as known:
                self._check_gone(topic, is_here=is_here)
                if known.is_foreign:
                    raise CannotMigrate(
                        f"{topic} has {known.next} messages that were written there before: delete "
                        "it there, or its clients would take their own messages for old ones"
                    )
                new = known.next == 0 and not self.desk.log.backlogs(known)
                is_removed = known.standing is Standing.REMOVED
                if is_removed or (known.standing is Standing.ACTIVE and known.first < 0):
                    self.desk.log.hand_over(known)
                return new or is_removed

    def _check_gone(self, topic: str, *, is_here: bool) -> None:
        """Raise CannotMigrate if a migration from here sends the topic's clients elsewhere."""
        try:
            gone = self._green_for(topic)
        except AskAgain as error:
            if is_here:
                return
            raise CannotMigrate(f"new topics go on from there: {error}") from error
        if gone is not None:
            raise CannotMigrate(f"{topic} is on {gone.web}, where a migration from here took it")

    def delete(self, topic: str) -> bool:
        """Forget the topic, as its users ask; False if another cluster has it."""
        with self.desk.lock:
            with self._changing(topic) as known:
                if known.standing is not Standing.ACTIVE:
                    return False
                self.desk.log.delete(known)
            self.desk.attached.close_where(lambda each: each == topic, "it is deleted")
        return True

    def subscribe(self, topic: str, subscription: str) -> bool:
        """Make a subscription from the topic's first entry on; whether it was not there."""
        with self._changing(topic) as known:
            here = self.desk.log.subscription(known, subscription)
            self.desk.log.subscribe(known, subscription, max(known.first, 0))
            return here is None

    def known(self, topic: str) -> Topic:
        """The topic that this broker holds; raises CannotMigrate."""
        with self._changing(topic) as known:
            return known

    @contextmanager
    def _asking(self, topic: str) -> Iterator[None]:
        self._asked_of = topic
        try:
            yield
        finally:
            self._asked_of = ""

    def _green(self, target: Target) -> Green:
        if target not in self._greens:
            self._greens[target] = Green(target, self._access)
        return self._greens[target]

    def _send_all_to(self, topic: Topic) -> None:
        with self.desk.lock:
            attached = self.desk.attached
            attached.answer_producers(topic.name, partial(self.desk.moved, topic))
            for name in attached.subscriptions(topic.name):
                attached.redirect(Migrated(topic.name, name, Part.CONSUMER, topic.urls))

    def _step(self, topic: str, step: Step, target: Target) -> Topic | None:
        """The topic after a step; None if there is none, or while its bundle is not served: the
        step is done with the first change then."""
        with self.desk.lock:
            self.desk.withheld.discard(topic)
            if self.desk.token(topic) is None:
                self.desk.restores[topic] = (step, target)
                return None
            self.desk.restores.pop(topic, None)
            if step is not Step.REOPEN and self.desk.log.look(topic) is None:
                # Its users have deleted it, or the file is new; it is not made here meanwhile.
                return None
            with self._changing(topic, make=True) as known:
                return self.desk.log.step(known, step, target)

    def _restore(self, bundle: str) -> None:
        """Do what is still to be done with topics of the bundle."""
        for topic in [each for each in self.desk.restores if bundle == self._bundle_of(each)]:
            with suppress(CannotMigrate):
                self._step(topic, *self.desk.restores[topic])

    def _bundle_of(self, topic: str) -> str | None:
        return self.desk.places.bundle_of(topic)

    @contextmanager
    def _changing(self, topic: str, make: bool = False) -> Iterator[Topic]:
        """A transaction with the topic in it; raises CannotMigrate."""
        with self.desk.lock:
            token = self.desk.token(topic)
            if token is None:
                raise CannotMigrate(f"{topic} is not served here")
            log = self.desk.log
            try:
                with log.transaction():
                    known = log.make(topic, token) if make else log.find(topic, token)
                    if known is None:
                        raise CannotMigrate(f"{topic} does not exist")
                    yield known
            except (Fenced, IllegalStep, sqlite3.OperationalError) as error:
                raise CannotMigrate(str(error)) from error


def is_same_cluster(one: Target, other: Target) -> bool:
    """Whether URLs are of one cluster: each broker may have been started with a list of its own."""
    return any(
        hosts_of(url) & hosts_of(other.urls().get(name, "")) for name, url in one.urls().items()
    )
