"""Finds a topic's broker from outside, and caches it: for clients, proxies and brokers.

if the topic's bundle is cached and was not found wrong: answer from the cache
else ask, one thread for all with the same question; follow redirects; wait as the answer says
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Final, Protocol

from agent.lookup.places import Place, Places, holds
from agent.lookup.single_flight import SingleFlight
from trimtab.model import NO_EPOCH, Epoch, parse_bundle
from trimtab.store.lookup import parse_topic
from trimtab.store.ring import position
from trimtab.wire.lookup import (
    Answer,
    AnswerKind,
    Avoid,
    Cause,
    ServiceUrls,
    answer_failed,
    answer_retry,
)

MOST_REDIRECTS: Final = 20
"""Pulsar's maxLookupRedirects."""
MOST_BUNDLES: Final = 100_000
"""Most bundles cached at once, some 75 MB."""
MOST_BROKERS: Final = 20_000
"""Most brokers whose URLs are kept, some 20 MB."""
PATIENCE_S: Final = 30.0
"""Pulsar's operation timeout."""
BACK_AGAIN_S: Final = 0.2
"""Pause before a client returns to the broker it just left: only its lease may still be alive."""


class Ask(Protocol):
    """Sends a lookup to a broker; ``broker`` is None for any, through the service URL.

    `LookupClient.urls_of` says where a broker listens that an answer redirects to. Raises OSError
    if the broker does not answer.
    """

    def __call__(
        self, broker: str | None, topic: str, /, *, authoritative: bool, avoid: Avoid | None
    ) -> Answer: ...


class Unanswered(Exception):
    """No broker was found; ``answer`` says why."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer.says or answer.cause)
        self.answer = answer


class NotNow(Unanswered):
    """The time limit is reached: a later attempt may succeed."""


class LookupFailed(Unanswered):
    """A retry cannot help until someone does what the error says."""


class Migrated(Unanswered):
    """The topic is on another cluster: ask that one, at ``answer.target``, from now on."""


class LookupClient:
    """Finds owners; any number of threads may use it."""

    def __init__(
        self,
        ask: Ask,
        *,
        most_bundles: int = MOST_BUNDLES,
        patience_s: float = PATIENCE_S,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self._ask = ask
        self._patience_s = patience_s
        self._clock, self._sleep = clock, sleep
        self._lock = threading.Lock()
        self._places = Places(most_bundles)
        self._urls: dict[str, ServiceUrls] = {}
        self._flights: SingleFlight[tuple[str, Epoch, Avoid | None], Place] = SingleFlight()

    def owner_of(self, topic: str, wrong: Place | None = None) -> Place:
        """The place to connect to. ``wrong`` is the previous answer, if it was useless.

        Raises InvalidName, NotNow, LookupFailed and Migrated.
        """
        name, namespace = parse_topic(topic)
        where = position(name)
        with self._lock:
            if wrong is not None:
                self._places.note(wrong.bundle, _after(wrong.epoch), None)
            known = self._places.find(namespace, where)
        if known is not None and known.place is not None:
            return known.place
        avoid = None if wrong is None else Avoid(wrong.broker, wrong.epoch)
        since = NO_EPOCH if known is None else known.since
        find = partial(self._found, name, avoid)
        if known is not None:
            place = self._flights.run((known.bundle, since, avoid), find)
            # The bundle may have been split, and the asking thread's topic be in another child.
            if holds(parse_bundle(place.bundle)[1], where):
                return place
        return self._flights.run((name, since, avoid), find)

    def moved(
        self,
        bundle: str,
        epoch: Epoch,
        owner: str | None,
        *,
        proxied: bool = False,
        urls: ServiceUrls | None = None,
    ) -> bool:
        """Note a broker's answer that ``owner`` (None: not that broker) has the bundle since
        ``epoch``; returns False if that is not news."""
        place = None if owner is None else Place(bundle, owner, epoch, proxied, urls)
        with self._lock:
            return self._places.note(bundle, epoch, place)

    def urls_of(self, broker: str) -> ServiceUrls | None:
        """Where a broker that an answer named listens, also one that was redirected to; None if no
        answer said so."""
        return self._urls.get(broker)

    def _note_urls(self, answer: Answer) -> None:
        if answer.broker is None or answer.urls is None:
            return
        with self._lock:
            self._urls.pop(answer.broker, None)
            self._urls[answer.broker] = answer.urls
            if len(self._urls) > MOST_BROKERS:
                del self._urls[next(iter(self._urls))]

    def _found(self, name: str, avoid: Avoid | None) -> Place:
        until = self._clock() + self._patience_s
        while True:
            answer = self._followed(name, avoid)
            if answer.kind is AnswerKind.FAILED:
                raise LookupFailed(answer)
            if answer.kind is AnswerKind.MIGRATED:
                raise Migrated(answer)
            if answer.bundle is not None and answer.broker is not None:
                place = Place(
                    answer.bundle, answer.broker, answer.epoch, answer.proxied, answer.urls
                )
                if avoid == (place.broker, place.epoch):
                    self._sleep(BACK_AGAIN_S)
                with self._lock:
                    self._places.note(place.bundle, place.epoch, place)
                return place
            pause = answer.after_ms / 1000
            if self._clock() + pause > until:
                raise NotNow(answer)
            self._sleep(pause)

    def _followed(self, name: str, avoid: Avoid | None) -> Answer:
        """The first answer that is not a redirect."""
        broker, authoritative = None, False
        for _ in range(MOST_REDIRECTS + 1):
            try:
                answer = self._ask(broker, name, authoritative=authoritative, avoid=avoid)
            except OSError as error:
                return answer_retry(Cause.UNREACHABLE, f"{broker or 'the service URL'}: {error}")
            self._note_urls(answer)
            if answer.kind is not AnswerKind.REDIRECT:
                return answer
            broker, authoritative = answer.broker, answer.authoritative
        return answer_failed(
            Cause.TOO_MANY_REDIRECTS,
            f"{name}: still redirected after {MOST_REDIRECTS}, to {broker}",
        )


def _after(epoch: Epoch) -> Epoch:
    return Epoch(epoch.generation, epoch.counter + 1)
