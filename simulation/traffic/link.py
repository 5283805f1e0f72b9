"""The way of one producer or consumer to the broker that serves its topic.

wanted   it is opened when it is due: at the broker that it was sent to, or else at the next host of
         its cluster, which serves it or says who does
asked    the broker has not answered yet
open     its frames go over ``session``
A redirect to another cluster is kept for the topic. If there is no answer for long, its own
cluster is asked again, which knows best: the topic may have been given back.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import StrEnum
from typing import Final
from zlib import crc32

from simulation.traffic.frames import FromBroker, Migrated, Part, Produce, Subscribe
from simulation.traffic.session import Session
from trimtab.store.lookup import parse_topic
from trimtab.wire.lookup import Avoid

FIRST_PAUSE_S: Final = 0.05
LONGEST_PAUSE_S: Final = 1.0
FREE_HOPS: Final = 3
"""Answers "elsewhere" or "migrated" in a row that are followed at once. After these it pauses: two
brokers, or two clusters, that disagree would otherwise be asked in a circle."""
ASK_HOME_AFTER: Final = 6
"""Failures in a row after which the other cluster is asked: its own, or that of the redirect."""


class Phase(StrEnum):
    """How far the way is open."""

    WANTED = "wanted"
    ASKED = "asked"
    OPEN = "open"


class Link(ABC):
    """Its client's lock guards it."""

    part: Part

    def __init__(self, topic: str, name: str) -> None:
        """``topic`` may be a short name; brokers answer with the whole one. Raises InvalidName."""
        self.topic, self.name = parse_topic(topic)[0], name
        self.phase = Phase.WANTED
        self.session: Session | None = None
        """Over which it was asked, or is open."""
        self.broker: str | None = None
        """The URL of the broker that it was sent to."""
        self.owner: Avoid | None = None
        """The owner, and the epoch by which it owns the topic, as the sender knew it."""
        self.avoid: Avoid | None = None
        """An owner that did not answer."""
        self.failures = 0
        """Since it was open last."""
        self.hops = 0
        self.turn = crc32(topic.encode())
        """Which host of its cluster is asked next; topics begin at different ones."""

    @property
    def group(self) -> tuple[str, str]:
        """Its topic, and which of its clients are redirected together."""
        return self.topic, self.name if self.part is Part.CONSUMER else ""

    def asking(self) -> Produce | Subscribe:
        """The frame that opens it."""
        kind = Produce if self.part is Part.PRODUCER else Subscribe
        return kind(self.topic, self.name, self.avoid)

    def asked(self, session: Session) -> None:
        self.phase, self.session = Phase.ASKED, session

    def opened(self) -> None:
        """The broker serves it."""
        self.phase = Phase.OPEN
        self.failures, self.hops, self.avoid = 0, 0, None

    def sent_to(self, url: str | None, owner: Avoid | None) -> float:
        """It is to be opened there, None: at any host of its cluster; in how many seconds."""
        self.phase, self.session = Phase.WANTED, None
        self.broker, self.owner, self.avoid = url, owner, None
        self.hops += 1
        return 0.0 if self.hops <= FREE_HOPS else self._pause(self.hops - FREE_HOPS)

    def redirected(self) -> float:
        """It is to be opened on another cluster; in how many seconds."""
        # Or its own cluster, which has just said so, would be asked again and again.
        self.failures = 0
        return self.sent_to(None, None)

    def failed(self, after_s: float = 0.0) -> float:
        """It is not served where it was asked, or no longer; in how many seconds to ask again."""
        self.phase, self.session = Phase.WANTED, None
        if self.broker is not None:
            self.avoid = self.owner
        self.broker = self.owner = None
        self.failures += 1
        self.turn += 1
        return max(after_s, self._pause(self.failures))

    def asks_home(self, redirected: bool) -> bool:
        """Whether its own cluster is asked next; ``redirected``: it knows another one."""
        return not redirected or self.failures // ASK_HOME_AFTER % 2 == 1

    def _pause(self, times: int) -> float:
        # Between half of it and all: topics that were cut off at once do not come back at once.
        spread = 0.5 + self.turn % 100 / 200
        return float(spread * min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2 ** min(times, 10)))

    @abstractmethod
    def heard(self, frame: FromBroker) -> float | None:
        """Take a frame of its own session; a number: ask again in so many seconds."""

    @abstractmethod
    def migrated(self, frame: Migrated) -> None:
        """Take what the cluster that is left says of it."""
