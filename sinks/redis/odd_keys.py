"""Finds what somebody else has written to trimtab's keys: a wrong type, or a record that is none.

Redis names no key when it refuses a command for its type. This looks at all keys, and reads the
records, so it is for people who look for a fault.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

import redis

from sinks.redis.ownership_store import OwnershipStore
from sinks.redis.server.connections import translate_errors
from trimtab.wire.keys import EVERY, KINDS, cluster_of, kind_of, ownership_key

_PAGE: Final = 1000
_KINDS: Final = (*sorted({*KINDS.values()} | {"list"}),)


class OddKey(NamedTuple):
    """A key that is not as trimtab writes it."""

    key: str
    cluster: str
    found: str
    """What it is instead."""


def find_odd_keys(client: redis.Redis) -> Iterator[OddKey]:
    """The keys of all clusters that are not as trimtab writes them.

    Raises StoreUnavailable, and Misconfigured where the user may not SCAN or read records.
    """
    for kind in _KINDS:
        with translate_errors(client):
            # Redis sorts by type: the right to SCAN is enough.
            names = client.scan_iter(match=EVERY, count=_PAGE, _type=kind)
            keys = sorted({name.decode(errors="replace") for name in names})
        for key in keys:
            cluster, wanted = cluster_of(key), kind_of(key)
            if wanted not in (kind, None):
                yield OddKey(key, cluster, f"a {kind}, not a {wanted}")
            elif key == ownership_key(cluster):
                yield from _odd_records(client, key, cluster)


def _odd_records(client: redis.Redis, key: str, cluster: str) -> Iterator[OddKey]:
    for bundle in OwnershipStore(client).readable_records(cluster).unreadable:
        yield OddKey(key, cluster, f"unreadable in its field {bundle}")
