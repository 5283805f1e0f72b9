"""The ownership records in Redis; every change of one goes through the transition script."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import msgspec
import redis
from redis.exceptions import NoScriptError

from sinks.connections import translated
from sinks.errors import Closed, Fenced
from sinks.scripts import run, run_loaded, transition_script
from trimtab.model import NO_EPOCH, Epoch
from trimtab.ownership import Event
from trimtab.wire.command import Command
from trimtab.wire.keys import (
    applied_key,
    bundles_key,
    command_stream,
    journal_key,
    lease_key,
    open_key,
    ownership_key,
    placed_key,
)
from trimtab.wire.ownership import (
    Candidate,
    Neighbour,
    Outcome,
    Record,
    Refused,
    Transition,
)

_PAGE: Final = 1000
"""Records a step when all are read: the server serves others in between."""

_record = msgspec.json.Decoder(Record)
_outcomes = msgspec.json.Decoder(tuple[Outcome, ...])


@dataclass(frozen=True, slots=True)
class BatchOutcome:
    """``outcomes`` in the order of the transitions; ``repeated``: those of the first run."""

    outcomes: tuple[Outcome, ...]
    repeated: bool = False


class OwnershipStore:
    """One Redis. All methods raise StoreUnavailable and Misconfigured beside what they name."""

    def __init__(self, client: redis.Redis) -> None:
        self._client = client

    def ping(self) -> None:
        """Raise unless the server answers."""
        with translated(self._client):
            self._client.ping()

    def apply_batch(
        self,
        cluster: str,
        transitions: Sequence[Transition],
        *,
        generation: int,
        query_id: str,
        batch: int,
    ) -> BatchOutcome:
        """Apply a batch of the job, or find that it was; raises Fenced and Closed."""
        caller = [str(generation), query_id, str(batch)]
        call = _call(cluster, caller, transitions)
        status, detail = run(self._client, transition_script(), call.keys, call.arguments)
        match status:
            case "applied":
                return BatchOutcome(_outcomes.decode(detail))
            case "repeated":
                outcomes = _outcomes.decode(detail)
                if _are_of(outcomes, transitions):
                    return BatchOutcome(outcomes, repeated=True)
                # Another batch of this number was applied: the checkpoint is a copy that went on.
                return BatchOutcome(tuple(map(_older, transitions)))
            case "older":
                return BatchOutcome(tuple(map(_older, transitions)))
            case "fenced":
                raise Fenced(f"{cluster} is open to generation {detail}, ours is {generation}")
            case _:
                raise Closed(f"{cluster} is closed: {detail}")

    def apply(self, cluster: str, transition: Transition) -> Outcome:
        """Apply what the broker ``transition.actor`` asks for; raises Closed."""
        call = _call(cluster, ["", "", ""], [transition])
        try:
            status, detail = run_loaded(
                self._client, transition_script(), call.keys, call.arguments
            )
        except NoScriptError as error:
            raise Closed(f"{cluster} is closed: no job has loaded the scripts") from error
        if status == "closed":
            raise Closed(f"{cluster} is closed: {detail}")
        return _outcomes.decode(detail)[0]

    def record(self, cluster: str, bundle: str) -> Record | None:
        """None if the bundle never had a record: it is free, with epoch (0, 0)."""
        with translated(self._client):
            text = self._client.hget(ownership_key(cluster), bundle)
        return None if text is None else _record.decode(text)

    def records(self, cluster: str) -> dict[str, Record]:
        """All records, read in pages: not one instant's picture if others write meanwhile."""
        with translated(self._client):
            pages = self._client.hscan_iter(ownership_key(cluster), count=_PAGE)
            return {bundle.decode(): _record.decode(text) for bundle, text in pages}


class _Request(msgspec.Struct, frozen=True, omit_defaults=True):
    """A transition as the script reads it."""

    id: str
    bundle: str
    event: Event
    expect: Epoch
    broker: str | None = None
    actor: str | None = None
    within: int | None = None
    commands: tuple[tuple[int, str, str], ...] = ()
    """Index of the command's stream in KEYS (from 1), its broker, its JSON."""
    neighbour: Neighbour | None = None
    children: tuple[str, ...] = ()
    candidates: tuple[Candidate, ...] = ()
    each: float = 0.0


@dataclass(frozen=True, slots=True)
class _Call:
    keys: list[str]
    arguments: list[str]


def _call(cluster: str, caller: list[str], transitions: Sequence[Transition]) -> _Call:
    keys = [
        open_key(cluster),
        ownership_key(cluster),
        journal_key(cluster),
        applied_key(cluster),
        bundles_key(cluster),
        placed_key(cluster),
        lease_key(cluster, ""),
    ]
    indexes: dict[str, int] = {}
    for command in (command for each in transitions for command in each.commands):
        if command.broker not in indexes:
            keys.append(command_stream(cluster, command.broker))
            indexes[command.broker] = len(keys)
    requests = [
        _Request(
            each.id,
            each.bundle,
            each.event,
            each.expect,
            each.broker,
            each.actor,
            each.within_ms or None,
            tuple((indexes[c.broker], c.broker, _unstamped(c)) for c in each.commands),
            each.neighbour,
            each.children,
            each.candidates,
            each.each,
        )
        for each in transitions
    ]
    return _Call(keys, [cluster, *caller, msgspec.json.encode(requests).decode()])


def _unstamped(command: Command) -> str:
    # The very default, not an equal one: msgspec leaves out what is the same object.
    bare = msgspec.structs.replace(command, epoch=NO_EPOCH, generation=0, issued_at=0, deadline=0)
    return msgspec.json.encode(bare).decode()


def _are_of(outcomes: Sequence[Outcome], transitions: Sequence[Transition]) -> bool:
    """Whether these outcomes are of these transitions."""
    return [(o.id, o.bundle) for o in outcomes] == [(t.id, t.bundle) for t in transitions]


def _older(transition: Transition) -> Outcome:
    return Outcome(
        id=transition.id, bundle=transition.bundle, accepted=False, reason=Refused.OLDER_BATCH
    )
