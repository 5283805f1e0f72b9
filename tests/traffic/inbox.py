"""Applications that tests look into: what arrives, and what is sent."""

from __future__ import annotations

from simulation.traffic.client import Client
from simulation.traffic.consumer import Consumer
from simulation.traffic.frames import Message
from simulation.traffic.producer import Producer
from tests.support.waiting import eventually
from tests.traffic.town import TOPIC


class Inbox:
    """A consumer's application: keeps what it gets, and acknowledges it."""

    def __init__(self, acknowledges: bool = True) -> None:
        self.got: list[str] = []
        self._acknowledges = acknowledges

    def __call__(self, consumer: Consumer, message: Message) -> None:
        self.got.append(message.value)
        if self._acknowledges:
            consumer.acknowledge(message.entry)


def attached(client: Client, inbox: Inbox, name: str = "s") -> Consumer:
    consumer = client.consumer(TOPIC, name, inbox)
    eventually(lambda: client.place_of(consumer), "the consumer is attached", 20)
    return consumer


def send(client: Client, producer: Producer, *numbers: int) -> None:
    for number in numbers:
        client.send(producer, f"key-{number % 3}", str(number))


def talking(client: Client) -> tuple[Inbox, Consumer, Producer]:
    """A consumer and a producer of the topic, of which one message has arrived."""
    inbox = Inbox()
    consumer = attached(client, inbox)
    producer = client.producer(TOPIC, "p")
    send(client, producer, 0)
    arrived(inbox, 1)
    return inbox, consumer, producer


def arrived(inbox: Inbox, messages: int) -> None:
    eventually(lambda: len(inbox.got) >= messages, f"{messages} messages", 30)


def all_stored(producer: Producer) -> None:
    eventually(lambda: producer.waiting == 0, "all are stored", 30)


def texts(*numbers: int) -> list[str]:
    return [str(number) for number in numbers]
