"""Leases: a broker's proof of life, a key that runs out unless it is renewed."""

from __future__ import annotations

from typing import Final

import redis

from sinks.connections import translated
from trimtab.wire.keys import lease_key

_PAGE: Final = 1000


class Leases:
    """Those of one Redis. All methods raise StoreUnavailable and Misconfigured."""

    def __init__(self, client: redis.Redis) -> None:
        self._client = client

    def renew(self, cluster: str, broker: str, session: str, ttl_ms: int) -> str | None:
        """Hold the lease for ``ttl_ms`` from the moment the server handles this.

        Returns the session that held it until now: None if it had run out, another one's if a
        second process uses this broker's name. Count the time from before the call.
        """
        with translated(self._client):
            before = self._client.set(lease_key(cluster, broker), session, px=ttl_ms, get=True)
        return before.decode() if isinstance(before, bytes) else None

    def alive(self, cluster: str) -> set[str]:
        """Brokers that hold a lease, as found one after another: not one instant's picture."""
        prefix = lease_key(cluster, "")
        with translated(self._client):
            keys = self._client.scan_iter(match=f"{_literal(prefix)}*", count=_PAGE)
            return {key.decode().removeprefix(prefix) for key in keys}


def _literal(name: str) -> str:
    """Escape what a glob pattern would take for more than itself."""
    return "".join(f"\\{character}" if character in "*?[]^-\\" else character for character in name)
