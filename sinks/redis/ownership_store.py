"""The ownership records in Redis; the transition script makes every change to them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from time import monotonic
from typing import Any, Final

import msgspec
import redis
from redis.exceptions import NoScriptError

from sinks.errors import Closed, Fenced, SinkError
from sinks.kafka.readable import Readable, readable
from sinks.redis.scripts import transition_script
from sinks.redis.server.connections import translate_errors
from sinks.redis.server.script import no_master, run, run_loaded
from sinks.redis.transition_call import Page, build_call, decode_outcomes
from trimtab.model import is_bundle
from trimtab.wire.keys import (
    MARK,
    open_key,
    owned_key,
    ownership_key,
)
from trimtab.wire.ownership import (
    Record,
    Refused,
    Transition,
    TransitionOutcome,
)

_PAGE: Final = 1000
"""Records read in a step: the server handles other clients in between."""

PAGE: Final = 200
"""Transitions in one script run: it blocks the server for some 10 ms."""

_MARK: Final = MARK.encode()


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
            page = Page(generation, query_id, batch, len(outcomes), digest)
            # The clock advances from page to page.
            now_ms = server_ms and server_ms + round(1000 * (monotonic() - begun))
            status, found = self._apply_page(cluster, rest[:PAGE], now_ms, page)
            if status == "older" or not _are_of(found, rest[: len(found)]):
                # A later batch was applied, or another with this number: the checkpoint is an
                # older one, or another job continued from a copy.
                return BatchOutcome((*outcomes, *map(_older, rest)), repeated)
            outcomes += found
            repeated = repeated or status == "repeated"
            if len(outcomes) == len(transitions):
                return BatchOutcome(tuple(outcomes), repeated)

    def _apply_page(
        self,
        cluster: str,
        transitions: Sequence[Transition],
        server_ms: int | None,
        page: Page,
    ) -> tuple[str, tuple[TransitionOutcome, ...]]:
        """The script's answer; raises Fenced and Closed."""
        call = build_call(transitions, server_ms, page)
        status, detail = run(self._client, transition_script(), [open_key(cluster)], [call])
        match status:
            case "applied" | "repeated":
                found = decode_outcomes(detail)
                # An empty answer is not accepted: the next page would be the same again.
                return (status, found) if found or not transitions else ("older", ())
            case "older":
                return status, ()
            case "fenced":
                text = f"{cluster} is open to generation {detail}, ours is {page.generation}"
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
        call = build_call(transitions, server_ms)
        try:
            status, detail = run_loaded(
                self._client, transition_script(), [open_key(cluster)], [call]
            )
        except NoScriptError as error:
            raise Closed(
                f"{cluster} is closed: no job of this version has loaded the scripts; upgrade an "
                "older job first"
            ) from error
        if status != "applied":
            raise self._not_writable(cluster, status, detail)
        return decode_outcomes(detail)

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
            found |= self.records_named(cluster, bundles[start : start + _PAGE])
        return found

    def records_named(self, cluster: str, bundles: Sequence[str]) -> dict[str, Record]:
        """The existing readable records of some bundles, at most a few hundred."""
        if not bundles:
            return {}
        with translate_errors(self._client):
            # Any: redis-py's answers are unions over protocols; ours is RESP2, bytes.
            texts: Any = self._client.hmget(ownership_key(cluster), bundles)
        found = zip(map(str.encode, bundles), texts, strict=True)
        return readable((name, text) for name, text in found if text is not None).records

    def owned_counts(self, cluster: str, brokers: Sequence[str]) -> dict[str, int]:
        """How many bundles each broker's records name it the owner of."""
        with translate_errors(self._client), self._client.pipeline(transaction=False) as asked:
            for broker in brokers:
                asked.scard(owned_key(cluster, broker))
            return dict(zip(brokers, asked.execute(), strict=True))

    def records(self, cluster: str) -> dict[str, Record]:
        """All readable records, in pages: not a snapshot if others write meanwhile."""
        return self.readable_records(cluster).records

    def readable_records(self, cluster: str) -> Readable:
        """The same, with the names of unreadable ones: any client may have written them."""
        with translate_errors(self._client):
            texts = self._client.hscan_iter(ownership_key(cluster), count=_PAGE)
            return readable((name, text) for name, text in texts if name != _MARK)


def _digest(transitions: Sequence[Transition]) -> str:
    """Tells a batch from others of the same number: a copied checkpoint continues its numbers."""
    named = [(each.id, each.bundle) for each in transitions]
    return blake2b(msgspec.json.encode(named), digest_size=8).hexdigest()


def _are_of(outcomes: Sequence[TransitionOutcome], transitions: Sequence[Transition]) -> bool:
    """Whether these outcomes are of these transitions."""
    return [(o.id, o.bundle) for o in outcomes] == [(t.id, t.bundle) for t in transitions]


def _older(transition: Transition) -> TransitionOutcome:
    return TransitionOutcome(
        id=transition.id, bundle=transition.bundle, accepted=False, reason=Refused.OLDER_BATCH
    )
