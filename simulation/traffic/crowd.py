"""Applications: a producer and a consumer for each of many topics, and a diary of what they saw.

``python -m simulation.traffic.crowd`` runs them in a process of their own, until SIGTERM.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Final

import msgspec
import typer

from simulation.traffic.checker import Did, Note
from simulation.traffic.client import Client
from simulation.traffic.consumer import Consumer
from simulation.traffic.frames import Message
from simulation.traffic.producer import Producer

SUBSCRIPTION: Final = "app"
PRODUCER: Final = "till"
KEYS: Final = 3
BEAT_S: Final = 0.05


class Diary:
    """A file of notes; any thread may write."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("ab", buffering=1 << 20)
        self._changing = threading.Lock()

    def note(self, note: Note) -> None:
        line = msgspec.json.encode(note) + b"\n"
        with self._changing:
            self._file.write(line)

    def close(self) -> None:
        with self._changing:
            self._file.close()


class Crowd:
    """The applications of some topics, as clients of one cluster."""

    def __init__(self, client: Client, topics: Sequence[str], diary: Diary) -> None:
        self._client, self._topics, self._diary = client, topics, diary
        self._sent = dict.fromkeys(topics, 0)
        self._got = dict.fromkeys(topics, 0)
        self._turn = 0
        self.consumers = [client.consumer(each, SUBSCRIPTION, self._take) for each in topics]
        self._producers: dict[str, Producer] = {}

    def attached(self) -> int:
        """How many topics have their consumer attached."""
        return sum(self._client.place_of(each) is not None for each in self.consumers)

    @property
    def begun(self) -> bool:
        """Whether it has producers."""
        return bool(self._producers)

    def begin(self, topics: Sequence[str] = ()) -> None:
        """Make the producers, of all its topics or of others; the subscriptions must be there, or
        they would miss messages."""
        for topic in topics or self._topics:
            self._producers[topic] = self._client.producer(
                topic, PRODUCER, partial(self._stored, topic)
            )

    def send(self, messages: int, among: Sequence[str] = ()) -> None:
        """Send so many messages, each to the next topic in turn, of these or of all."""
        topics = among or self._topics
        for _ in range(messages):
            self._turn += 1
            topic = topics[self._turn % len(topics)]
            number = self._sent.setdefault(topic, 0)
            key = f"key-{number % KEYS}"
            self._diary.note(Note(Did.SENT, topic, PRODUCER, number, key))
            self._sent[topic] += 1
            self._client.send(self._producers[topic], key, str(number))

    def missing(self) -> int:
        """How many messages were sent and have not come, or are not known to be stored."""
        with self._client.lock:
            late = sum(self._sent[each] - self._got[each] for each in self._topics)
        return max(0, late) + self.unstored()

    def unstored(self) -> int:
        """How many messages no broker has said to have stored."""
        with self._client.lock:
            return sum(each.waiting for each in self._producers.values())

    def got(self) -> int:
        """How many messages have come."""
        with self._client.lock:
            return sum(self._got.values())

    def clusters(self) -> dict[str, int]:
        """How many consumers are at each cluster, "" for those that are at none now."""
        found: dict[str, int] = {}
        for each in self.consumers:
            cluster = each.cluster if self._client.place_of(each) is not None else ""
            found[cluster] = found.get(cluster, 0) + 1
        return found

    def _stored(self, topic: str, value: str) -> None:
        self._diary.note(Note(Did.STORED, topic, PRODUCER, int(value)))

    def _take(self, consumer: Consumer, message: Message) -> None:
        topic, number = message.topic, int(message.value)
        self._diary.note(Note(Did.GOT, topic, message.producer, number, message.key, SUBSCRIPTION))
        self._got[topic] += 1
        consumer.acknowledge(message.entry)


class Status(msgspec.Struct):
    """What a crowd reports, a line of JSON on its standard output each second."""

    attached: int
    sent: int
    missing: int
    clusters: dict[str, int]


def run(
    service_url: Annotated[str, typer.Argument(help="pulsar://host:port,host:port")],
    topics: Annotated[Path, typer.Argument(help="A file with a topic a line.")],
    diary: Annotated[Path, typer.Argument(help="Where it notes what it sees.")],
    rate: Annotated[float, typer.Option(help="Messages a second, over all topics.")] = 100.0,
    loud: Annotated[int, typer.Option(help="So many topics get them, the first; 0: all.")] = 0,
) -> None:
    """Attach all consumers, then send until SIGUSR1, and go on receiving until SIGTERM."""
    quiet, ended = threading.Event(), threading.Event()
    signal.signal(signal.SIGUSR1, lambda *_: quiet.set())
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    names, notes = topics.read_text("utf-8").split(), Diary(diary)
    with Client(service_url, "crowd") as client:
        crowd = Crowd(client, names, notes)
        sent, due, told = 0, 0.0, 0.0
        while not ended.wait(BEAT_S):
            if not crowd.begun and crowd.attached() == len(names):
                crowd.begin()
            if crowd.begun and not quiet.is_set():
                due += rate * BEAT_S
                crowd.send(int(due), names[:loud])
                sent, due = sent + int(due), due % 1
            if time.monotonic() > told + 1.0:
                told = time.monotonic()
                status = Status(crowd.attached(), sent, crowd.missing(), crowd.clusters())
                print(msgspec.json.encode(status).decode(), flush=True)
    notes.close()


if __name__ == "__main__":
    typer.run(run)
