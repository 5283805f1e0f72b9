"""Judges from the clients' diaries whether messages were lost, doubled or disordered.

It reads what applications say that they sent, what they were told is stored, and what they got. It
knows neither the protocol nor the log nor how topics migrate, and imports nothing of them.

for each subscription that was there before the first message:
  lost        a message that is stored, or at the end of a run sent, and was never got
  duplicated  one that was got twice
  disordered  one that was got after a later one of the same producer and key
  unknown     one that was never sent
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

MOST_SHOWN: Final = 10


class Did(StrEnum):
    """What an application notes."""

    SENT = "sent"
    """It is about to hand a message to its producer."""
    STORED = "stored"
    """It was told that the message is stored."""
    GOT = "got"
    """Its consumer handed it the message."""


class Note(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A line of a diary. Messages are numbered by the application that sends them, from 0 on for
    each producer; the message carries its number, producer and key."""

    did: Did
    topic: str
    producer: str
    number: int
    key: str = ""
    subscription: str = ""
    """The subscription that got the message."""


class Fault(NamedTuple):
    """A message that went astray."""

    topic: str
    producer: str
    number: int
    subscription: str = ""

    def __str__(self) -> str:
        of = f" for {self.subscription}" if self.subscription else ""
        return f"{self.topic} {self.producer}/{self.number}{of}"


@dataclass
class Verdict:
    """What the checker found; `ok` if it found nothing wrong."""

    sent: int = 0
    stored: int = 0
    got: int = 0
    lost: list[Fault] = field(default_factory=list)
    duplicated: list[Fault] = field(default_factory=list)
    disordered: list[Fault] = field(default_factory=list)
    unknown: list[Fault] = field(default_factory=list)
    unstored: list[Fault] = field(default_factory=list)
    """Sent, and never said to be stored: a run that ends in quiet has none."""

    @property
    def ok(self) -> bool:
        return not any(faults for _, faults in self.faults())

    def faults(self) -> Iterator[tuple[str, list[Fault]]]:
        for name in ("lost", "duplicated", "disordered", "unknown", "unstored"):
            yield name, getattr(self, name)

    def __str__(self) -> str:
        counts = ", ".join(f"{name} {len(faults)}" for name, faults in self.faults())
        lines = [f"sent {self.sent}, stored {self.stored}, got {self.got}: {counts}"]
        for name, faults in self.faults():
            lines += [f"  {name}: {fault}" for fault in faults[:MOST_SHOWN]]
        return "\n".join(lines)


class _Topic:
    """What is noted of one topic."""

    def __init__(self) -> None:
        self.sent: defaultdict[str, set[int]] = defaultdict(set)
        self.stored: defaultdict[str, set[int]] = defaultdict(set)
        self.got: defaultdict[str, list[Note]] = defaultdict(list)
        """Subscription to its messages as they came."""


def read(diaries: Iterable[Path]) -> Iterator[Note]:
    """The notes of some diaries, each in its order. A last line that was cut short, as by a kill,
    is left out; raises `msgspec.MsgspecError` for any other that is none."""
    decode = msgspec.json.Decoder(Note).decode
    for diary in diaries:
        with diary.open("rb") as lines:
            for line in lines:
                if line.endswith(b"\n"):
                    yield decode(line)


def judge(notes: Iterable[Note], subscriptions: Iterable[str]) -> Verdict:
    """Judge a run in which each topic had these subscriptions from the beginning."""
    verdict, topics = Verdict(), defaultdict[str, _Topic](_Topic)
    for note in notes:
        topic = topics[note.topic]
        match note.did:
            case Did.SENT:
                topic.sent[note.producer].add(note.number)
                verdict.sent += 1
            case Did.STORED:
                topic.stored[note.producer].add(note.number)
                verdict.stored += 1
            case Did.GOT:
                topic.got[note.subscription].append(note)
                verdict.got += 1
    wanted = tuple(subscriptions)
    for name, topic in topics.items():
        _judge_stored(verdict, name, topic)
        for subscription in {*wanted, *topic.got}:
            _judge_got(verdict, name, topic, subscription, subscription in wanted)
    return verdict


def _judge_stored(verdict: Verdict, name: str, topic: _Topic) -> None:
    for producer, numbers in topic.sent.items():
        missing = numbers - topic.stored[producer]
        verdict.unstored += [Fault(name, producer, number) for number in sorted(missing)]
    for producer, numbers in topic.stored.items():
        unsent = numbers - topic.sent[producer]
        verdict.unknown += [Fault(name, producer, number) for number in sorted(unsent)]


def _judge_got(
    verdict: Verdict, name: str, topic: _Topic, subscription: str, from_the_beginning: bool
) -> None:
    seen: defaultdict[str, set[int]] = defaultdict(set)
    newest: dict[tuple[str, str], int] = {}
    for note in topic.got[subscription]:
        fault = Fault(name, note.producer, note.number, subscription)
        if note.number not in topic.sent[note.producer]:
            verdict.unknown.append(fault)
        if note.number in seen[note.producer]:
            verdict.duplicated.append(fault)
        elif note.number < newest.get((note.producer, note.key), -1):
            verdict.disordered.append(fault)
        seen[note.producer].add(note.number)
        newest[note.producer, note.key] = max(
            note.number, newest.get((note.producer, note.key), -1)
        )
    for producer in topic.sent if from_the_beginning else ():
        missing = (topic.sent[producer] | topic.stored[producer]) - seen[producer]
        verdict.lost += [Fault(name, producer, each, subscription) for each in sorted(missing)]


def main() -> None:
    """``python -m simulation.traffic.checker SUBSCRIPTION DIARY...``: exits with 1 on a fault."""
    verdict = judge(read(map(Path, sys.argv[2:])), sys.argv[1].split(","))
    print(verdict)
    raise SystemExit(0 if verdict.ok else 1)


if __name__ == "__main__":
    main()
