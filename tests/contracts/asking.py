"""Builders of requests, and looks into Redis that the store itself does not offer."""

from __future__ import annotations

from typing import Any

import msgspec
import redis

from sinks.redis.ownership_store import OwnershipStore
from trimtab.model import NO_EPOCH, Epoch
from trimtab.ownership import Event
from trimtab.wire.command import Command, CommandKind
from trimtab.wire.keys import command_stream, journal_key
from trimtab.wire.ownership import Change, Transition, TransitionOutcome

GENERATION = 5
BUNDLE = "public/default/0x00000000_0x40000000"
HALVES = ("public/default/0x00000000_0x20000000", "public/default/0x20000000_0x40000000")
ABOVE = "public/default/0x40000000_0x80000000"
"""The neighbour of BUNDLE, and what they are together."""
BOTH = "public/default/0x00000000_0x80000000"


def job(event: Event, expect: Epoch, broker: str | None = None, **more: object) -> Transition:
    """What the job asks for."""
    return _request(event, expect, broker=broker, **more)


def broker(actor: str, event: Event, expect: Epoch = NO_EPOCH, **more: object) -> Transition:
    """What a broker asks for."""
    return _request(event, expect, actor=actor, **more)


def _request(event: Event, expect: Epoch, **more: object) -> Transition:
    asked = {"bundle": BUNDLE, "id": f"{more} {event} {expect}", **more}
    return msgspec.convert({"event": event, "expect": expect, **asked}, Transition)


def command(to: str, kind: CommandKind, name: str = "command") -> Command:
    return Command(id=f"{name}/{kind}", cluster="c", broker=to, kind=kind, bundle=BUNDLE)


def ask(store: OwnershipStore, cluster: str, transition: Transition) -> TransitionOutcome:
    """As a broker if it names an actor, else as the job in a batch of its own."""
    if transition.actor is not None:
        return store.apply(cluster, transition)
    done = store.apply_batch(
        cluster, [transition], generation=GENERATION, query_id=transition.id, batch=0
    )
    return done.outcomes[0]


def journal(client: redis.Redis, cluster: str) -> list[Change]:
    values = entries(client, journal_key(cluster), b"change")
    return [msgspec.json.decode(value, type=Change) for value in values]


def commands(client: redis.Redis, cluster: str, broker: str) -> list[Command]:
    values = entries(client, command_stream(cluster, broker), b"command")
    return [msgspec.json.decode(value, type=Command) for value in values]


def entries(client: redis.Redis, stream: str, field: bytes) -> list[bytes]:
    # Any: the answer's type in redis-py is a union over protocols; ours is RESP2, bytes.
    found: Any = client.xrange(stream)
    return [fields[field] for _, fields in found]
