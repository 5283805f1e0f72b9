"""The job's newest hints where lookups may place unowned bundles, and the counts placed since.

All these keys are written again with the next hints: what somebody else has spoiled heals by then.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any, Final, NamedTuple

import msgspec
import redis
import structlog

from sinks.errors import Damaged
from sinks.kafka.readable import MALFORMED, readable
from sinks.redis.bundle_index import BundleIndex
from sinks.redis.server.connections import address, translate_errors
from trimtab.wire.hints import Hints
from trimtab.wire.keys import (
    MARK,
    groups_key,
    hints_key,
    ownership_key,
    placed_key,
    tallies_key,
)
from trimtab.wire.ownership import Record

log = structlog.get_logger()

_DIGITS: Final = 10
"""A count with so many is none."""

MOST_COUNTED: Final = 1024
"""Most bundles that are counted for one placement: their records are some 250 kB. Of more, only
what was placed since the hints is."""

_hints = msgspec.json.Decoder(Hints)
_members = msgspec.json.Decoder(tuple[str, ...])


class Counted(NamedTuple):
    """Where bundles are, as of one moment."""

    records: dict[str, list[Record]]
    """The readable records of each namespace; none for namespaces with too many bundles."""
    tallied: dict[str, int]
    """Tally to what was placed since the hints."""


def write_hints(hints: Hints) -> list[str]:
    """The arguments of `hints.lua` after the generation."""
    bare = msgspec.structs.replace(hints, groups={})
    fields = list[str]()
    for group, namespaces in sorted(hints.groups.items()):
        fields += (_members_field(group), msgspec.json.encode(namespaces).decode())
        for namespace in namespaces:
            fields += (namespace, group)
    digest = blake2b(msgspec.json.encode(fields), digest_size=16).hexdigest()
    return [msgspec.json.encode(bare).decode(), digest, *fields]


def _members_field(group: str) -> str:
    # No namespace begins so.
    return f"={group}"


class PlacementHints:
    """The hints in one Redis. All methods raise StoreUnavailable and Misconfigured."""

    def __init__(self, client: redis.Redis) -> None:
        self._client = client
        self._index = BundleIndex(client)
        self._told = ""

    def read(self, cluster: str) -> Hints | None:
        """The newest hints; None until the job has run a round. Raises Damaged if they cannot be
        read."""
        key = hints_key(cluster)
        try:
            with translate_errors(self._client):
                # Any: redis-py's answers are unions over protocols; ours is RESP2, bytes.
                text: Any = self._client.get(key)
            return None if text is None else _hints.decode(text)
        except (Damaged, *MALFORMED) as error:
            raise self._damaged(key, error) from error

    def placed(self, cluster: str) -> int:
        """How many bundles were placed on brokers by the newest hints; counts that cannot be read
        are left out, as the scripts do."""
        try:
            with translate_errors(self._client):
                # Any: as above.
                counts: Any = self._client.hvals(placed_key(cluster))
        except Damaged as error:
            self._tell(cluster, str(error))
            return 0
        readable = [int(count) for count in counts if _is_count(count)]
        spoiled = len(counts) - len(readable)
        self._tell(cluster, f"{spoiled} of its counts are no numbers" if spoiled else "")
        return sum(readable)

    def group_of(self, cluster: str, namespace: str) -> tuple[str, tuple[str, ...]] | None:
        """The namespace's anti-affinity group and the namespaces in it; None if it has none. Raises
        Damaged if they cannot be read."""
        key = groups_key(cluster)
        try:
            with translate_errors(self._client):
                # Any: as above.
                group: Any = self._client.hget(key, namespace)
                if group is None:
                    return None
                members: Any = self._client.hget(key, _members_field(group.decode()))
            return group.decode(), _members.decode(members or b"[]")
        except (Damaged, *MALFORMED) as error:
            raise self._damaged(key, error) from error

    def count(self, cluster: str, namespaces: Sequence[str], tallies: Sequence[str]) -> Counted:
        """The records of the namespaces' bundles, together MOST_COUNTED at most, and the tallies,
        all as of one moment."""
        bundles = dict[str, list[str]]()
        room = MOST_COUNTED
        for namespace in namespaces:
            names = self._index.bundles(cluster, namespace, room + 1)
            if len(names) <= room:
                bundles[namespace] = names
                room -= len(names)
        wanted = [bundle for names in bundles.values() for bundle in names]
        with translate_errors(self._client), self._client.pipeline(transaction=True) as together:
            # HMGET needs a field.
            together.hmget(ownership_key(cluster), [*wanted, MARK])
            together.hmget(tallies_key(cluster), [*tallies, ""])
            # Spoiled tallies count as none, as for the scripts; records stand beside them.
            texts, counts = together.execute(raise_on_error=False)
            if isinstance(texts, Exception):
                raise texts
        if isinstance(counts, Exception):
            counts = [None] * len(tallies)
        found = {b: text for b, text in zip(wanted, texts, strict=False) if text is not None}
        records = readable((bundle.encode(), text) for bundle, text in found.items()).records
        return Counted(
            {
                namespace: [records[bundle] for bundle in names if bundle in records]
                for namespace, names in bundles.items()
            },
            {tally: _read_count(count) for tally, count in zip(tallies, counts, strict=False)},
        )

    def _damaged(self, key: str, error: Exception) -> Damaged:
        return Damaged(
            f"Redis at {address(self._client)}: {key} cannot be read ({error}): the job's next "
            "round writes it again; see who else may write to it"
        )

    def _tell(self, cluster: str, cause: str) -> None:
        # Lookups read it many times a second.
        if cause and cause != self._told:
            log.warning(
                "placed bundles are not counted until the job's next round writes the key again",
                key=placed_key(cluster),
                cause=cause,
            )
        self._told = cause


def _is_count(text: bytes) -> bool:
    return text.isdigit() and len(text) < _DIGITS


def _read_count(text: bytes | None) -> int:
    return int(text) if text is not None and _is_count(text) else 0
