"""Settles a lookup for a bundle that is not simply served: waits, or gives it to a broker.

read the record
a live broker serves it, or none ever will: say so
it has no owner, or its owner's lease is gone: give it to one of two brokers
look again after a pause, each twice the one before, until the patience ends
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

from agent.lookup.claiming import Claims, NoPlace
from agent.lookup.directory import Directory
from sinks.redis.leasing.leases import Leases
from sinks.redis.ownership_store import OwnershipStore
from trimtab.model import NO_EPOCH
from trimtab.ownership import State
from trimtab.store.lookup import STEPS, LookupAction
from trimtab.wire.lookup import (
    Answer,
    AnswerKind,
    Avoid,
    Cause,
    ServiceUrls,
    answer_failed,
    answer_retry,
)
from trimtab.wire.ownership import Record, Refused

FIRST_PAUSE_S: Final = 0.002
LONGEST_PAUSE_S: Final = 0.1


@dataclass(frozen=True, slots=True)
class LookupSettings:
    """Settings of lookups; ``broker`` is the one that answers."""

    cluster: str
    broker: str
    patience: float = 1.0
    """Seconds a lookup waits for a bundle's next owner. Longer: it blocks a thread; shorter: the
    client asks again."""
    proxied: bool = False
    """Clients reach brokers through the service URL only."""
    decides: bool = True
    """Whether it gives bundles to brokers; if not, it redirects clients to a broker that does.
    False for brokers that drain, and for proxies."""


class Question(NamedTuple):
    """A question about a bundle, as `agent.lookup.server.Lookup.lookup` gets it about a topic."""

    bundle: str
    authoritative: bool
    avoid: Avoid | None
    indexed: bool
    """Whether the index just named the bundle: without a record it is then free, not gone."""


class Settler:
    """Settles bundles; any number of threads may use it."""

    def __init__(  # noqa: PLR0913 - its links, and its clocks
        self,
        settings: LookupSettings,
        store: OwnershipStore,
        leases: Leases,
        claims: Claims,
        directory: Directory,
        clock: Callable[[], float],
        sleep: Callable[[float], object],
    ) -> None:
        self._settings = settings
        self._store, self._leases, self._claims = store, leases, claims
        self._directory = directory
        self._clock, self._sleep = clock, sleep

    def answer(self, asked: Question) -> Answer | None:
        """Answer; None if the bundle no longer exists; raises Closed and StoreUnavailable."""
        until = self._clock() + self._settings.patience
        pause = FIRST_PAUSE_S
        tried = set() if self._decides(asked) else {self._settings.broker}
        while True:
            record = self._store.record(self._settings.cluster, asked.bundle)
            match self.step(asked, record):
                case LookupAction.SERVED if record is not None:
                    return self.connect(asked.bundle, record)
                case LookupAction.GONE:
                    return None
                case LookupAction.HELD_BACK:
                    return answer_failed(
                        Cause.QUARANTINED,
                        f"one owner of {asked.bundle} after another died; an operator readmits it",
                    )
                case LookupAction.ORPHANED:
                    answer = self._place(asked, record, tried)
                    if answer is not None:
                        return answer
            if self._clock() + pause > until:
                return answer_retry(Cause.HAND_OVER, f"{asked.bundle} is being given to a broker")
            self._sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE_S)

    def step(self, asked: Question, record: Record | None) -> LookupAction:
        """What to do about the record, given its owner's lease and the client's experience."""
        if record is None:
            return LookupAction.ORPHANED if asked.indexed else LookupAction.GONE
        step = STEPS[record.state]
        if record.owner is None or (
            step is LookupAction.SERVED and not _in_vain(asked.avoid, record)
        ):
            return step
        if not self._leases.holds(self._settings.cluster, record.owner):
            return LookupAction.ORPHANED
        # While it drains it refuses clients, and no other broker serves before that is done.
        return LookupAction.ON_ITS_WAY if record.state is State.RELEASING else step

    def connect(self, bundle: str, record: Record) -> Answer:
        """Answer CONNECT with the record's owner."""
        return Answer(
            kind=AnswerKind.CONNECT,
            bundle=bundle,
            broker=record.owner,
            epoch=record.epoch,
            authoritative=True,
            proxied=self._settings.proxied,
            urls=self._urls_of(record.owner),
        )

    def _place(self, asked: Question, record: Record | None, tried: set[str]) -> Answer | None:
        """Give the bundle to a broker, or name one that will; None: look at the record again."""
        expect = NO_EPOCH if record is None else record.epoch
        try:
            if not self._decides(asked):
                drawn = self._claims.draw(asked.bundle, tried)
                return self._redirect(asked.bundle, drawn.brokers, tried)
            drawn, outcome = self._claims.place(asked.bundle, expect, tried)
        except NoPlace as error:
            return answer_retry(error.cause, str(error))
        if outcome.reason is Refused.NO_LEASE:
            tried.update(drawn.brokers)
        elif outcome.accepted and outcome.record is not None and outcome.record.owner is not None:
            # If it declines, another is asked next.
            tried.add(outcome.record.owner)
        return None

    def _redirect(self, bundle: str, brokers: list[str], tried: set[str]) -> Answer | None:
        for broker in brokers:
            if self._leases.holds(self._settings.cluster, broker):
                return Answer(
                    kind=AnswerKind.REDIRECT,
                    bundle=bundle,
                    broker=broker,
                    authoritative=True,
                    urls=self._urls_of(broker),
                )
        tried.update(brokers)
        return None

    def _urls_of(self, broker: str | None) -> ServiceUrls | None:
        return None if broker is None else self._directory.urls_of(broker)

    def _decides(self, asked: Question) -> bool:
        return self._settings.decides or asked.authoritative


def _in_vain(avoid: Avoid | None, record: Record) -> bool:
    """Whether the client already tried the owner, at this epoch, without success."""
    return avoid is not None and avoid.broker == record.owner and avoid.epoch >= record.epoch
