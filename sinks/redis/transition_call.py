"""What the transition script is asked, and what it answers."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from sinks.kafka.readable import readable, readable_record
from trimtab.model import Epoch
from trimtab.ownership import Event
from trimtab.wire.ownership import (
    Candidate,
    Neighbour,
    Refused,
    Transition,
    TransitionOutcome,
)


# Not `Transition` itself: the script writes stamps in front of a command's JSON, and the session
# is a text, because Lua would round the number.
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
    commands: tuple[tuple[str, str], ...] = ()
    """Its broker, and its JSON."""
    neighbour: Neighbour | None = None
    children: tuple[str, ...] = ()
    candidates: tuple[Candidate, ...] = ()
    each: float | None = None
    tallies: dict[str, dict[str, int]] = {}


class Page(msgspec.Struct, frozen=True):
    """Which part of a batch of the job a call is."""

    generation: int
    query: str
    batch: int
    first: int
    """How many transitions of the batch come before."""
    digest: str
    """Digest of the whole batch, in hexadecimal."""


class ScriptCall(msgspec.Struct, frozen=True, omit_defaults=True):
    """The argument of one run of the transition script."""

    requests: tuple[ScriptRequest, ...]
    now: int | None = None
    """The server's time (ms) by the caller's own clock, if the caller is certain of it."""
    page: Page | None = None
    """Absent from a broker."""


def build_call(
    transitions: Sequence[Transition], server_ms: int | None, page: Page | None = None
) -> bytes:
    """The script's argument for these transitions. ``server_ms``, ``page``: as in `ScriptCall`."""
    requests = tuple(
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
                (command.broker, msgspec.json.encode(command.unstamped()).decode())
                for command in each.commands
            ),
            each.neighbour,
            each.children,
            each.candidates,
            each.each or None,
            each.tallies,
        )
        for each in transitions
    )
    return msgspec.json.encode(ScriptCall(requests, server_ms, page))


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
