"""Follows trimtab.commands: for tools that watch, never for a broker, which obeys its stream.

It writes nothing, not even its position. A batch that Spark repeats repeats its commands: a copy
has the first one's id and is dropped.

    python -m admin.follower --kafka 127.0.0.1:9092 --cluster east --earliest
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any, Final

import msgspec
import typer
from kafka import KafkaConsumer, TopicPartition
from kafka.errors import KafkaError

from admin.ending import next_doctor
from sinks.errors import KafkaUnavailable, Misconfigured
from sinks.kafka.clients import check_access
from sinks.kafka.security import security_of_environment
from streaming.logs import configure
from trimtab.wire.command import Command
from trimtab.wire.keys import COMMANDS

REMEMBERED: Final = 100_000
"""Newest command ids kept: more than a batch has, and copies follow within a batch."""

_command = msgspec.json.Decoder(Command)


class Sieve:
    """Yields commands of one cluster and broker, or of all; each once."""

    poisoned = 0
    """Records that were not commands."""
    repeated = 0
    """Copies that were dropped."""

    def __init__(self, cluster: str | None = None, broker: str | None = None) -> None:
        self._cluster, self._broker = cluster, broker
        self._ids: dict[str, None] = {}

    def commands(self, values: Iterable[bytes | None]) -> Iterator[Command]:
        """The wanted commands among a topic's records, in order."""
        for value in values:
            command = self._parsed(value)
            if command is not None and self._wanted(command) and self._new(command):
                yield command

    def _parsed(self, value: bytes | None) -> Command | None:
        try:
            return _command.decode(value or b"")
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            self.poisoned += 1
            return None

    def _wanted(self, command: Command) -> bool:
        return self._cluster in (None, command.cluster) and self._broker in (None, command.broker)

    def _new(self, command: Command) -> bool:
        if command.id in self._ids:
            self.repeated += 1
            return False
        self._ids[command.id] = None
        if len(self._ids) > REMEMBERED:
            del self._ids[next(iter(self._ids))]
        return True


@contextmanager
def following(bootstrap: str, *, earliest: bool = False) -> Iterator[Iterator[bytes | None]]:
    """The topic's values, without end: from now on, or from the earliest that Kafka keeps.

    Raises KafkaUnavailable if no broker of ``bootstrap`` answers, and Misconfigured if it refuses
    us or has no such topic; later it waits while Kafka is unavailable.
    """
    security = security_of_environment()
    # kafka-python cannot tell a wrong password or certificate from an absent server.
    check_access(bootstrap, security.librdkafka())
    try:
        consumer = KafkaConsumer(
            bootstrap_servers=bootstrap,
            **security.kafka_python(),
            group_id=None,
            enable_auto_commit=False,
            allow_auto_create_topics=False,
            metrics_enabled=False,
            bootstrap_timeout_ms=5_000,
        )
    except KafkaError as error:
        raise KafkaUnavailable(f"Kafka at {bootstrap}: {error}") from error
    try:
        _place(consumer, bootstrap, earliest)
        yield _values(consumer, bootstrap)
    finally:
        consumer.close()


# Any: kafka-python has no annotations.
def _place(consumer: Any, bootstrap: str, earliest: bool) -> None:
    partitions = consumer.partitions_for_topic(COMMANDS)
    if not partitions:
        raise Misconfigured(
            f"Kafka at {bootstrap} has no {COMMANDS}; type: trimtab kafka create-topics"
        )
    places = [TopicPartition(COMMANDS, partition) for partition in sorted(partitions)]
    consumer.assign(places)
    (consumer.seek_to_beginning if earliest else consumer.seek_to_end)(*places)
    for place in places:
        # Fetch the offset now: seeking alone leaves that to the first read.
        consumer.position(place)


def _values(consumer: Any, bootstrap: str) -> Iterator[bytes | None]:
    try:
        for record in consumer:
            yield record.value
    except KafkaError as error:
        # It retries passing errors itself: this is a revoked right, or a codec not installed.
        raise Misconfigured(f"Kafka at {bootstrap}, reading {COMMANDS}: {error}") from error


def follow(
    kafka: Annotated[str, typer.Option(help="Kafka's bootstrap servers.")] = "127.0.0.1:9092",
    cluster: Annotated[str | None, typer.Option(help="Only this cluster's.")] = None,
    broker: Annotated[str | None, typer.Option(help="Only this broker's, host:port.")] = None,
    earliest: Annotated[bool, typer.Option(help="From the earliest that is kept.")] = False,
) -> None:
    """Print commands as lines of JSON until Ctrl-C; then, on stderr, what was left out."""
    sieve = Sieve(cluster, broker)
    try:
        with following(kafka, earliest=earliest) as values:
            for command in sieve.commands(values):
                typer.echo(msgspec.json.encode(command))
    except (KafkaUnavailable, Misconfigured) as error:
        typer.echo(f"{error}\nNext: {next_doctor(kafka=kafka)}", err=True)
        raise typer.Exit(5 if isinstance(error, KafkaUnavailable) else 2) from error
    except KeyboardInterrupt:
        typer.echo(f"{sieve.poisoned} no commands, {sieve.repeated} copies", err=True)


if __name__ == "__main__":
    # librdkafka's message about each attempt is no answer; a failure is shown once, at the end.
    configure("info")
    typer.run(follow)
