"""The calls that a broker makes to its two scripts, taken from the code that makes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec
import redis

from admin.wire import examples as e
from sinks.redis.leasing.lease import FOR_THE_NEXT
from sinks.redis.leasing.leases import Leases
from sinks.redis.ownership_store import OwnershipStore
from trimtab.model import Epoch
from trimtab.ownership import LONGEST_LEASE_MS, State
from trimtab.wire.ownership import Record, Refused, Transition
from trimtab.wire.topics import TopicRefused


class Outcome(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The script's answer to one request. A record is the JSON text as stored, inside a JSON
    string: decode it a second time."""

    id: str
    bundle: str
    accepted: bool
    reason: Refused | None = None
    record: str | None = None
    """The bundle's record now; absent if it has none."""
    others: dict[str, str] = {}
    """The records, now, of the neighbour and the children that the request names."""


class TopicSaid(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The topic script's answer to one change. A record is the JSON text as stored, inside a JSON
    string: decode it a second time."""

    topic: str
    reason: TopicRefused | None = None
    """Why it was refused; absent if it was not."""
    record: str | None = None
    """The topic's record now; absent if it has none."""


class Call(NamedTuple):
    """One EVALSHA and what it answers."""

    keys: tuple[str, ...]
    arguments: tuple[str, ...]
    answer: tuple[str, ...]


class _Recorder:
    """Takes a script call in place of a server."""

    def __init__(self, answer: Sequence[str]) -> None:
        self.call: Call | None = None
        self._answer = tuple(answer)

    def evalsha(  # as redis-py, which takes either
        self,
        sha: str,  # noqa: ARG002
        count: int,
        *rest: str | bytes,
    ) -> list[bytes]:
        texts = tuple(each.decode() if isinstance(each, bytes) else each for each in rest)
        self.call = Call(texts[:count], texts[count:], self._answer)
        return [part.encode() for part in self._answer]


def _recorded(answer: Sequence[str], ask: Callable[[Any], object]) -> Call:
    recorder = _Recorder(answer)
    ask(recorder)
    assert recorder.call is not None
    return recorder.call


def _lease(answer: Sequence[str], *, ttl_ms: int = LONGEST_LEASE_MS, **more: Any) -> Call:
    def ask(client: redis.Redis) -> None:
        Leases(client).renew(e.CLUSTER, e.BROKER, e.SESSION, ttl_ms, **more)

    return _recorded(answer, ask)


def _accepted(request: Transition, record: Record, **others: Record) -> Outcome:
    return Outcome(
        id=request.id,
        bundle=request.bundle,
        accepted=True,
        record=_text(record),
        others={bundle: _text(each) for bundle, each in others.items()},
    )


def _next(request: Transition, state: State, owner: str | None = None) -> Record:
    """The record that the script writes."""
    epoch = Epoch(_GENERATION, request.expect.counter + 1)
    return Record(state=state, epoch=epoch, owner=owner, since=e.AT, by=request.id)


def _text(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _transition(request: Transition, outcome: Outcome, server_ms: int | None = None) -> Call:
    def ask(client: redis.Redis) -> None:
        OwnershipStore(client).apply(e.CLUSTER, request, server_ms)

    return _recorded(("applied", _text([outcome])), ask)


_GENERATION: Final = 7
_NOW: Final = str(e.AT)
_HELD: Final = ("held", str(e.SESSION), str(LONGEST_LEASE_MS), _NOW, e.HISTORY, "0")


def lease_calls() -> Mapping[str, Call]:
    """A renewal, the same while the store is closed, and an end."""
    asserted = ("asserted", "", str(LONGEST_LEASE_MS), _NOW, e.HISTORY, "0")
    released = ("released", str(e.SESSION), "0", _NOW, e.HISTORY, "0")
    return {
        "a renewal": _lease(_HELD, asked_for_ms=0),
        "with an assertion, after `assert`": _lease(
            asserted, assertion=e.ASSERTION, asked_for_ms=0
        ),
        "the end of the process, the rest for its next one": _lease(
            released, ttl_ms=FOR_THE_NEXT, asked_for_ms=0
        ),
    }


def transition_calls() -> Mapping[str, Call]:
    """The requests that brokers make."""
    claimed = _next(e.CLAIM, State.OWNED, e.BROKER)
    refused = Outcome(
        id=e.CLAIM.id,
        bundle=e.LOWER,
        accepted=False,
        reason=e.REFUSAL,
        record=_text(e.AFTER_HAND_OVER),
    )
    halves = {child: _next(e.SPLIT_DONE, State.OWNED, e.BROKER) for child in e.SPLIT_DONE.children}
    parts = {
        e.UPPER: Record(state=State.DELETED, epoch=Epoch(7, 22), since=e.AT, by=e.MERGE_DONE.id),
        e.WHOLE: Record(
            state=State.OWNED, epoch=Epoch(7, 22), owner=e.BROKER, since=e.AT, by=e.MERGE_DONE.id
        ),
    }
    return {
        "`claim`, when it agrees with the store": _transition(e.CLAIM, _accepted(e.CLAIM, claimed)),
        "the same, refused: another broker has it": _transition(e.CLAIM, refused),
        "`hand-over`, the answer to `transfer`": _transition(
            e.HAND_OVER, _accepted(e.HAND_OVER, e.AFTER_HAND_OVER)
        ),
        "`retire`, the answer to `split`": _transition(
            e.SPLIT_DONE, _accepted(e.SPLIT_DONE, _next(e.SPLIT_DONE, State.DELETED), **halves)
        ),
        "`retire`, the answer to `merge`": _transition(
            e.MERGE_DONE, _accepted(e.MERGE_DONE, _next(e.MERGE_DONE, State.DELETED), **parts)
        ),
        "`assign`, from a lookup": _transition(
            e.ASSIGN, _accepted(e.ASSIGN, _next(e.ASSIGN, State.ASSIGNING, e.OTHER)), e.AT
        ),
    }
