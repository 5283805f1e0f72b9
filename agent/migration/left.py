"""What a topic waits for: what is left of it on blue, and who has still to get it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from trimtab.wire.topics import MOST_NAMED, TopicRecord, Waiting


class Left(NamedTuple):
    """What is left of a topic on blue."""

    messages: int = 0
    """In all subscriptions together, once it is terminated."""
    subscriptions: tuple[Waiting, ...] = ()
    """Those that have the most of them to read, the first by name of equals."""
    regions: tuple[Waiting, ...] = ()
    """The clusters of other regions that lack the most, before it is terminated."""
    more: int = 0
    """How many subscriptions, or regions, are not named."""

    @property
    def subscription(self) -> str:
        """The one that has the most to read; empty without any."""
        return self.subscriptions[0].name if self.subscriptions else ""


NOTHING_LEFT: Final = Left()


def left_to_read(backlog: Mapping[str, int]) -> Left:
    """What subscriptions have still to read."""
    named, more = _most(backlog)
    return Left(sum(max(0, each) for each in backlog.values()), subscriptions=named, more=more)


def left_to_replicate(backlog: Mapping[str, int]) -> Left:
    """What other regions lack: nothing is read here to the end before they have it."""
    named, more = _most(backlog)
    return Left(regions=named, more=more)


def left_in(record: TopicRecord) -> Left:
    """What a record says."""
    return Left(record.backlog, record.subscriptions, record.regions, record.more)


def _most(backlog: Mapping[str, int]) -> tuple[tuple[Waiting, ...], int]:
    """Those with the most messages, and how many others have some."""
    found = [Waiting(name, messages) for name, messages in backlog.items() if messages > 0]
    found.sort(key=lambda each: (-each.messages, each.name))
    return tuple(found[:MOST_NAMED]), len(found[MOST_NAMED:])
