"""What clients and brokers send one another: lines of JSON; ``is`` names the kind of a line.

docs/traffic.md is the page for readers; `tests/traffic/test_frames.py` holds it to these types.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Final, NamedTuple

import msgspec

from sinks.kafka.readable import MALFORMED
from trimtab.migration.migration import Target
from trimtab.model import Epoch, InvalidName
from trimtab.store.lookup import parse_topic
from trimtab.wire.lookup import Avoid

VERSION: Final = 2
"""Version of the protocol that clients of this package use."""
KNOWS_REDIRECT: Final = 2
"""The first version whose clients follow `Migrated`."""
NONE: Final = -1
"""A sequence: the producer has stored nothing. An entry: before the first."""
LONGEST_LINE: Final = 1 << 20
"""Bytes; a peer that sends more without an end of line is cut off."""


class Malformed(ValueError):
    """A line is not a frame; the connection has to be closed."""


class Part(StrEnum):
    """What of a client a frame is about: its ``name`` is the producer's or the subscription's."""

    PRODUCER = "producer"
    CONSUMER = "consumer"


class _Frame(msgspec.Struct, frozen=True, tag_field="is", tag=str.lower, gc=False):
    """A line."""


class Connect(_Frame, frozen=True):
    """Client's first line."""

    version: int
    client: str


class Connected(_Frame, frozen=True):
    """The broker takes the client."""

    version: int
    cluster: str


class Refused(_Frame, frozen=True):
    """The broker does not take the client, and closes the connection."""

    needs: int
    """The lowest version that it takes."""
    says: str


class Produce(_Frame, frozen=True):
    """Open a producer; an older one of this name is closed.

    ``avoid``: as `Elsewhere` gave them, the owner that did not answer, and the epoch.
    """

    topic: str
    name: str
    avoid: Avoid | None = None


class Producing(_Frame, frozen=True):
    """The producer is open; ``sequence`` is the highest that the topic has of it."""

    topic: str
    name: str
    sequence: int


class Send(_Frame, frozen=True):
    """Store a message. A sequence that is not above the producer's highest is stored already."""

    topic: str
    name: str
    sequence: int
    key: str
    value: str


class Receipt(_Frame, frozen=True):
    """All of the producer's messages up to ``sequence`` are stored."""

    topic: str
    name: str
    sequence: int


class Subscribe(_Frame, frozen=True):
    """Attach to a subscription, alone: an older consumer of it is closed. A new subscription
    begins at the end of the topic."""

    topic: str
    name: str
    avoid: Avoid | None = None


class Subscribed(_Frame, frozen=True):
    """The consumer is attached; ``entry`` comes next. Entries count up within ``log``, which is no
    name: two clusters may have the same one. Empty: of a broker that has none."""

    topic: str
    name: str
    cluster: str
    entry: int
    log: str = ""


class Message(_Frame, frozen=True):
    """An entry of the topic, for a subscription."""

    topic: str
    name: str
    entry: int
    producer: str
    sequence: int
    key: str
    value: str


class Ack(_Frame, frozen=True):
    """The consumer has done with all entries up to ``entry``."""

    topic: str
    name: str
    entry: int


class Elsewhere(_Frame, frozen=True):
    """Another broker of this cluster owns the topic: ask that one."""

    topic: str
    name: str
    part: Part
    url: str
    broker: str
    epoch: Epoch


class Retry(_Frame, frozen=True):
    """Not now, or no longer: the producer or consumer is closed; ask again after a while."""

    topic: str
    name: str
    part: Part
    after_ms: int
    says: str


class Migrated(_Frame, frozen=True):
    """The topic is on another cluster; keep the URLs, and open the producer or consumer there.

    ``sequence``: what this cluster has stored of the producer, for good: it is not sent again.
    """

    topic: str
    name: str
    part: Part
    urls: Target
    sequence: int = NONE


FromClient = Connect | Produce | Send | Subscribe | Ack
FromBroker = (
    Connected | Refused | Producing | Receipt | Subscribed | Message | Elsewhere | Retry | Migrated
)


def fit(frame: FromBroker, version: int) -> FromBroker:
    """The frame, or what a client of that version gets in its place."""
    if not isinstance(frame, Migrated) or version >= KNOWS_REDIRECT:
        return frame
    says = f"{frame.topic} has migrated: clients before version {KNOWS_REDIRECT} cannot follow it"
    return Refused(KNOWS_REDIRECT, says)


class _Producer(msgspec.Struct, frozen=True, tag_field="is", tag="produce"):
    """Which producer a line opens."""

    topic: str
    name: str


class _Consumer(msgspec.Struct, frozen=True, tag_field="is", tag="subscribe"):
    """Which subscription a line attaches to."""

    topic: str
    name: str


class Unreadable(NamedTuple):
    """Stands for a line that would open something, and has a member that cannot be read."""

    topic: str
    """As the client named it."""
    name: str
    part: Part
    says: str


_encoder: Final = msgspec.json.Encoder()
_of_client: Final = msgspec.json.Decoder(FromClient)
_opening: Final = msgspec.json.Decoder(_Producer | _Consumer)
_of_broker: Final = msgspec.json.Decoder(FromBroker)


def encode(frames: Iterable[FromClient | FromBroker]) -> bytes:
    """The lines of some frames."""
    return b"".join(_encoder.encode(frame) + b"\n" for frame in frames)


def of_client(lines: Iterable[bytes]) -> list[FromClient | Unreadable]:
    """The frames of lines that a client sent, their topics by whole names; raises Malformed."""
    return [_of_client_line(line) for line in lines]


def _of_client_line(line: bytes) -> FromClient | Unreadable:
    try:
        frame: FromClient = _of_client.decode(line)
        if isinstance(frame, Connect):
            return frame
        whole, _ = parse_topic(frame.topic)
        if whole != frame.topic:
            frame = msgspec.structs.replace(frame, topic=whole)
        return frame
    except (*MALFORMED, InvalidName) as error:
        return _opens(line, str(error))


def _opens(line: bytes, says: str) -> Unreadable:
    """What a line asks to open, though the rest of it cannot be read; raises Malformed."""
    try:
        asked = _opening.decode(line)
    except MALFORMED as error:
        raise Malformed(says) from error
    part = Part.PRODUCER if isinstance(asked, _Producer) else Part.CONSUMER
    return Unreadable(asked.topic, asked.name, part, says)


def of_broker(lines: Iterable[bytes]) -> list[FromBroker]:
    """The frames of lines that a broker sent; raises Malformed."""
    try:
        return [_of_broker.decode(line) for line in lines]
    except MALFORMED as error:
        raise Malformed(str(error)) from error
