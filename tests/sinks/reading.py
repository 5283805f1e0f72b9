"""Reads a topic back, as another subscriber would."""

from __future__ import annotations

from confluent_kafka import Consumer, Message, TopicPartition


def everything_in(bootstrap: str, topic: str, partition: int = 0) -> list[Message]:
    """All committed records of a topic's partition."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "tests",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
        }
    )
    try:
        consumer.assign([TopicPartition(topic, partition, 0)])
        found: list[Message] = []
        while True:
            message = consumer.poll(10)
            assert message is not None, f"{topic} cannot be read"
            if message.error() is not None:
                return found
            found.append(message)
    finally:
        consumer.close()


def values_of(bootstrap: str, topic: str, key: str) -> list[bytes]:
    return [
        message.value() or b""
        for message in everything_in(bootstrap, topic)
        if message.key() == key.encode()
    ]
