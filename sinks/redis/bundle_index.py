"""Reads a namespace's bundles from the index that the transition script maintains."""

from __future__ import annotations

from typing import Any, Final

import redis

from sinks.redis.server.connections import translate_errors
from trimtab.model import is_bundle, namespace_of
from trimtab.wire.keys import bundles_key

_PAGE: Final = 1_000
"""Names that a call reads: it blocks the server for less than a millisecond."""


class BundleIndex:
    """The index in one Redis. All methods raise StoreUnavailable and Misconfigured."""

    def __init__(self, client: redis.Redis) -> None:
        self._client = client

    def bundles(self, cluster: str, namespace: str, most: int | None = None) -> list[str]:
        """A namespace's bundles in ring order, as of one moment, the first ``most`` of them; empty
        if it has none."""
        with translate_errors(self._client):
            # Any: redis-py's answers are unions over protocols; ours is RESP2, bytes.
            names: Any = self._client.zrangebylex(
                bundles_key(cluster),
                f"[{namespace}/0x",
                f"({namespace}/1",
                start=None if most is None else 0,
                num=most,
            )
        found = (name.decode(errors="replace") for name in names)
        # A namespace with a cluster in its name may begin like another's bundle, and brokers may
        # write to the index without the script.
        return [
            bundle for bundle in found if namespace_of(bundle) == namespace and is_bundle(bundle)
        ]

    def after(self, cluster: str, name: str, most: int) -> list[str]:
        """The next bundles of the whole cluster after ``name``, by name; at most ``most``."""
        with translate_errors(self._client):
            # Any: as above.
            names: Any = self._client.zrangebylex(
                bundles_key(cluster), f"({name}", "+", start=0, num=most
            )
        return [name.decode(errors="replace") for name in names]

    def namespaces(self, cluster: str, after: str = "", most: int | None = None) -> list[str]:
        """The namespaces that have a bundle, by name: those after one, the first ``most``."""
        found: dict[str, None] = {}
        page = _PAGE if most is None else min(_PAGE, 2 * most)
        after = f"{after}/1" if after else ""
        while names := self.after(cluster, after, page):
            found |= dict.fromkeys(namespace_of(name) for name in names if is_bundle(name))
            if most is not None and len(found) >= most:
                break
            last = names[-1]
            # Past the rest of the last namespace, which may be large.
            after = f"{namespace_of(last)}/1" if is_bundle(last) else last
        return sorted(found)[:most]
