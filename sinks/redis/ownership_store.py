"""The ownership records in Redis; the transition script makes every change to them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from time import monotonic
from typing import Any, Final

import msgspec
import redis
from redis.exceptions import NoScriptError

from sinks.errors import Closed, Fenced, SinkError
from sinks.kafka.readable import Readable, readable, readable_record
from sinks.redis.scripts import no_master, run, run_loaded, transition_script
from sinks.redis.server.connections import translate_errors
from trimtab.model import NO_EPOCH, Epoch, is_bundle
from trimtab.ownership import Event
from trimtab.wire.command import Command
from trimtab.wire.keys import (
    MARK,
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
    Record,
    Refused,
    Transition,
    TransitionOutcome,
)


class ScriptOutcome(msgspec.Struct, frozen=True):
    """`trimtab.wire.ownership.TransitionOutcome` with undecoded records: texts, or objects in what
    earlier versions have kept of a batch."""

    id: str
    bundle: str
    accepted: bool
    reason: Refused | None = None
    record: msgspec.Raw = msgspec.Raw(b"null")
    others: dict[str, msgspec.Raw] = {}


_PAGE: Final = 1000
"""Records read in a step: the server handles other clients in between."""

PAGE: Final = 200
"""Transitions in one script run: it blocks the server for some 10 ms."""

_MARK: Final = MARK.encode()

_raw_outcomes = msgspec.json.Decoder(tuple[ScriptOutcome, ...])
_text = msgspec.json.Decoder(str)


@dataclass(frozen=True, slots=True)
class BatchOutcome:
    """``repeated``: Redis had applied some of them in an earlier run of the batch."""

    outcomes: tuple[TransitionOutcome, ...]
    repeated: bool = False


class OwnershipStore:
    """The records in one Redis. All methods also raise StoreUnavailable and Misconfigured."""

    def __init__(self, client: redis.Redis) -> None:
        self._client = client

    def ping(self) -> None:
        """Raise unless the server answers."""
        with translate_errors(self._client):
            self._client.ping()

    def apply_batch(  # noqa: PLR0913 - a batch, its job, and the time
        self,
        cluster: str,
        transitions: Sequence[Transition],
        *,
        generation: int,
        query_id: str,
        batch: int,
        server_ms: int | None = None,
    ) -> BatchOutcome:
        """Apply a batch of the job, page by page, or find it already applied.

        After an error or a crash, send the whole batch again: applied transitions return their
        first outcome, and the rest are applied. The last batches of the eight newest queries are
        remembered: an older one, or another with its number, is refused as a whole. Those of a
        forgotten query are checked by their expected epochs alone. Raises Fenced and Closed.

        ``server_ms``: the server's time by the caller's own clock, if it is certain.
        """
        begun = monotonic()
        outcomes, repeated = list[TransitionOutcome](), False
        digest = _digest(transitions)
        while True:
            rest = transitions[len(outcomes) :]
            caller = [str(generation), query_id, f"{batch}/{len(outcomes)}/{digest}"]
            # The clock advances from page to page.
            now_ms = server_ms and server_ms + round(1000 * (monotonic() - begun))
            status, found = self._apply_page(cluster, caller, rest[:PAGE], now_ms)
            if status == "older" or not _are_of(found, rest[: len(found)]):
                # A later batch was applied, or another with this number: the checkpoint is an
                # older one, or another job continued from a copy.
                return BatchOutcome((*outcomes, *map(_older, rest)), repeated)
            outcomes += found
            repeated = repeated or status == "repeated"
            if len(outcomes) == len(transitions):
                return BatchOutcome(tuple(outcomes), repeated)

    def _apply_page(
        self, cluster: str, caller: list[str], page: Sequence[Transition], server_ms: int | None
    ) -> tuple[str, tuple[TransitionOutcome, ...]]:
        """The script's answer; raises Fenced and Closed."""
        call = _call(cluster, caller, page, server_ms)
        status, detail = run(self._client, transition_script(), call.keys, call.arguments)
        match status:
            case "applied" | "repeated":
                found = _decoded(detail)
                # An empty answer is not accepted: the next page would be the same again.
                return (status, found) if found or not page else ("older", ())
            case "older":
                return status, ()
            case "fenced":
                text = f"{cluster} is open to generation {detail}, ours is {caller[0]}"
                raise Fenced(text, int(detail))
            case _:
                raise self._not_writable(cluster, status, detail)

    def apply(
        self, cluster: str, transition: Transition, server_ms: int | None = None
    ) -> TransitionOutcome:
        """Apply a request of the broker ``transition.actor``; raises Closed.

        ``server_ms`` as for `apply_batch`.
        """
        return self.apply_all(cluster, [transition], server_ms)[0]

    def apply_all(
        self, cluster: str, transitions: Sequence[Transition], server_ms: int | None = None
    ) -> tuple[TransitionOutcome, ...]:
        """Apply a broker's requests, each independently, in order; raises Closed.

        They block the server meanwhile: a hundred take a few milliseconds.
        """
        call = _call(cluster, ["", "", ""], transitions, server_ms)
        try:
            status, detail = run_loaded(
                self._client, transition_script(), call.keys, call.arguments
            )
        except NoScriptError as error:
            raise Closed(
                f"{cluster} is closed: no job of this version has loaded the scripts; upgrade an "
                "older job first"
            ) from error
        if status != "applied":
            raise self._not_writable(cluster, status, detail)
        return _decoded(detail)

    def _not_writable(self, cluster: str, status: str, detail: str) -> SinkError:
        if status == "isolated":
            return no_master(self._client, status, detail)
        return Closed(f"{cluster} is closed: {detail}")

    def record(self, cluster: str, bundle: str) -> Record | None:
        """A bundle's record. None if it never had one: it is free, with epoch (0, 0). Also None if
        the record cannot be read: requests for the bundle are then refused (UNREADABLE)."""
        with translate_errors(self._client):
            # Any: redis-py's answers are unions over protocols; ours is RESP2, bytes.
            text: Any = self._client.hget(ownership_key(cluster), bundle)
        return None if text is None else readable([(bundle.encode(), text)]).records.get(bundle)

    def records_of(
        self, cluster: str, broker: str, besides: Iterable[str] = ()
    ) -> dict[str, Record]:
        """Existing records of the bundles in the broker's owned set, and of those in ``besides``.

        Reads in pages: they may show different moments.
        """
        with translate_errors(self._client):
            names = self._client.sscan_iter(owned_key(cluster, broker), count=_PAGE)
            # Brokers may write to the set without the script.
            noted = {known for name in names if is_bundle(known := name.decode(errors="replace"))}
        bundles = sorted(noted.union(besides))
        found: dict[str, Record] = {}
        for start in range(0, len(bundles), _PAGE):
            found |= self._page(cluster, bundles[start : start + _PAGE])
        return found

    def _page(self, cluster: str, bundles: Sequence[str]) -> dict[str, Record]:
        """The existing readable records of some bundles."""
        with translate_errors(self._client):
            # Any: redis-py's answers are unions over protocols; ours is RESP2, bytes.
            texts: Any = self._client.hmget(ownership_key(cluster), bundles)
        found = zip(map(str.encode, bundles), texts, strict=True)
        return readable((name, text) for name, text in found if text is not None).records

    def records(self, cluster: str) -> dict[str, Record]:
        """All readable records, in pages: not a snapshot if others write meanwhile."""
        return self.readable_records(cluster).records

    def readable_records(self, cluster: str) -> Readable:
        """The same, with the names of unreadable ones: any client may have written them."""
        with translate_errors(self._client):
            texts = self._client.hscan_iter(ownership_key(cluster), count=_PAGE)
            return readable((name, text) for name, text in texts if name != _MARK)


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
class _Call:
    keys: list[str]
    arguments: list[str]


def _call(
    cluster: str, caller: list[str], transitions: Sequence[Transition], server_ms: int | None
) -> _Call:
    keys = list(_keys(cluster))
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
            tuple((indexes[c.broker], c.broker, _unstamped(c)) for c in each.commands),
            each.neighbour,
            each.children,
            each.candidates,
            each.each,
            each.tallies,
        )
        for each in transitions
    ]
    now_ms = "" if server_ms is None else str(server_ms)
    return _Call(keys, [cluster, *caller, msgspec.json.encode(requests).decode(), now_ms])


@cache
def _keys(cluster: str) -> tuple[str, ...]:
    return (
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


def _decoded(answer: str) -> tuple[TransitionOutcome, ...]:
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


def _digest(transitions: Sequence[Transition]) -> str:
    """Tells a batch from others of the same number: a copied checkpoint continues its numbers."""
    named = [(each.id, each.bundle) for each in transitions]
    return blake2b(msgspec.json.encode(named), digest_size=8).hexdigest()


def _unstamped(command: Command) -> str:
    # The default object itself, not an equal one: msgspec omits a field only if it is that object.
    bare = msgspec.structs.replace(command, epoch=NO_EPOCH, generation=0, issued_at=0, deadline=0)
    return msgspec.json.encode(bare).decode()


def _are_of(outcomes: Sequence[TransitionOutcome], transitions: Sequence[Transition]) -> bool:
    """Whether these outcomes are of these transitions."""
    return [(o.id, o.bundle) for o in outcomes] == [(t.id, t.bundle) for t in transitions]


def _older(transition: Transition) -> TransitionOutcome:
    return TransitionOutcome(
        id=transition.id, bundle=transition.bundle, accepted=False, reason=Refused.OLDER_BATCH
    )
