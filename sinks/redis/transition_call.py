"""What the transition script is asked, and what it answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import msgspec

from sinks.kafka.readable import readable, readable_record
from trimtab.model import Epoch
from trimtab.ownership import Event
from trimtab.wire.keys import (
    applied_key,
    bundles_key,
    command_stream,
    journal_key,
    lease_key,
    open_key,
    owned_key,
    ownership_key,
    placed_key,
    replicas_key,
    sessions_key,
    tallies_key,
    unjournalled_key,
)
from trimtab.wire.ownership import (
    Candidate,
    Neighbour,
    Refused,
    Transition,
    TransitionOutcome,
)


# Not `Transition` itself: a command names its stream by its place in KEYS, which only a call knows,
# and the session is a text, because Lua would round the number.
class ScriptRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """A transition as the script reads it."""

    id: str
    bundle: str
    event: Event
    expect: Epoch
    broker: str | None = None
    actor: str | None = None
    session: str | None = None
    within: int | None = None
    commands: tuple[tuple[int, str, str], ...] = ()
    """Index of the command's stream in KEYS (from 1), its broker, its JSON."""
    neighbour: Neighbour | None = None
    children: tuple[str, ...] = ()
    candidates: tuple[Candidate, ...] = ()
    each: float = 0.0
    tallies: dict[str, dict[str, int]] = {}


@dataclass(frozen=True, slots=True)
class Call:
    """The keys and arguments of one run of the script.

    Bytes where they are known beforehand: the client would encode a text anew at each call.
    """

    keys: list[str | bytes]
    arguments: list[str | bytes]


def build_call(
    cluster: str, caller: list[str], transitions: Sequence[Transition], server_ms: int | None
) -> Call:
    """The call for these transitions.

    ``caller``: generation, query and batch, empty for a broker. ``server_ms``: the server's time by
    the caller's own clock, if it is certain.
    """
    keys: list[str | bytes] = [*_keys(cluster)]
    indexes: dict[str, int] = {}
    for command in (command for each in transitions for command in each.commands):
        if command.broker not in indexes:
            keys.append(command_stream(cluster, command.broker))
            indexes[command.broker] = len(keys)
    requests = [
        ScriptRequest(
            each.id,
            each.bundle,
            each.event,
            each.expect,
            each.broker,
            each.actor,
            None if each.session is None else str(each.session),
            each.within_ms or None,
            tuple(
                (indexes[c.broker], c.broker, msgspec.json.encode(c.unstamped()).decode())
                for c in each.commands
            ),
            each.neighbour,
            each.children,
            each.candidates,
            each.each,
            each.tallies,
        )
        for each in transitions
    ]
    now_ms = "" if server_ms is None else str(server_ms)
    return Call(keys, [cluster, *caller, msgspec.json.encode(requests), now_ms])


@cache
def _keys(cluster: str) -> tuple[bytes, ...]:
    keys = (
        open_key(cluster),
        ownership_key(cluster),
        journal_key(cluster),
        applied_key(cluster),
        bundles_key(cluster),
        placed_key(cluster),
        lease_key(cluster, ""),
        owned_key(cluster, ""),
        unjournalled_key(cluster),
        replicas_key(cluster),
        sessions_key(cluster),
        tallies_key(cluster),
    )
    return tuple(key.encode() for key in keys)


class ScriptOutcome(msgspec.Struct, frozen=True):
    """`trimtab.wire.ownership.TransitionOutcome` with undecoded records: texts, or objects in what
    earlier versions have kept of a batch."""

    id: str
    bundle: str
    accepted: bool
    reason: Refused | None = None
    record: msgspec.Raw = msgspec.Raw(b"null")
    others: dict[str, msgspec.Raw] = {}


_raw_outcomes = msgspec.json.Decoder(tuple[ScriptOutcome, ...])
_text = msgspec.json.Decoder(str)


def decode_outcomes(answer: str) -> tuple[TransitionOutcome, ...]:
    """The script's outcomes, without their unreadable records."""
    return tuple(map(_readable_outcome, _raw_outcomes.decode(answer)))


def _readable_outcome(raw: ScriptOutcome) -> TransitionOutcome:
    texts = [(bundle.encode(), _bare(text)) for bundle, text in raw.others.items()]
    return TransitionOutcome(
        id=raw.id,
        bundle=raw.bundle,
        accepted=raw.accepted,
        reason=raw.reason,
        record=readable_record(_bare(raw.record)),
        others=readable(texts).records if texts else {},
    )


def _bare(record: msgspec.Raw) -> bytes:
    """A record's JSON, out of the text that it stands in."""
    text = bytes(record)
    return _text.decode(text).encode() if text.startswith(b'"') else text
