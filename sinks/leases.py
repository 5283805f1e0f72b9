"""Leases: a broker's proof of life, a key that runs out unless it is renewed."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Final, NamedTuple

import msgspec
import redis
from redis.exceptions import NoScriptError

from sinks.connections import translated
from sinks.scripts import lease_script, run_loaded
from trimtab.wire.assertion import Assertion
from trimtab.wire.keys import assertion_key, assertions_prefix, lease_key, open_key

_PAGE: Final = 1000

_KEPT_MS: Final = 24 * 3600 * 1000
"""What was said to a run is of no use once the next one is open."""


class Renewal(StrEnum):
    """What became of a renewal."""

    HELD = "held"
    ASSERTED = "asserted"
    """Held, and the store is closed: nobody can have been given a bundle meanwhile."""
    ASSERT = "assert"
    """Not held: the store is closed, and wants to hear what this broker saw."""
    SUPERSEDED = "superseded"
    """Not held: a process that started later uses this broker's name."""
    RELEASED = "released"


class Lease(NamedTuple):
    """The answer to a renewal."""

    renewal: Renewal
    detail: str
    """The session that held the lease until now, "" for none; the server's run (ASSERT)."""
    granted_ms: int


class Leases:
    """Those of one Redis. All methods raise StoreUnavailable and Misconfigured."""

    def __init__(self, client: redis.Redis) -> None:
        self._client = client

    def renew(self, cluster: str, broker: str, session: int, ttl_ms: int) -> Lease:
        """Hold the lease for ``ttl_ms`` from the moment the server handles this, or for less.

        Count the time from before the call. 0 gives the lease up.
        """
        names = [open_key(cluster), lease_key(cluster, broker), assertions_prefix(cluster)]
        try:
            status, detail, granted = run_loaded(
                self._client, lease_script(), names, [str(session), str(ttl_ms), broker]
            )
        except NoScriptError:
            return self._renew_unscripted(cluster, broker, session, ttl_ms)
        return Lease(Renewal(status), detail, int(granted))

    def say(self, cluster: str, broker: str, server_run: str, assertion: Assertion) -> None:
        """Tell a closed store what this broker saw."""
        key = assertion_key(cluster, server_run, broker)
        with translated(self._client):
            self._client.set(key, msgspec.json.encode(assertion), px=_KEPT_MS)

    def _renew_unscripted(self, cluster: str, broker: str, session: int, ttl_ms: int) -> Lease:
        """On a server to which no job has come yet: brokers may not load scripts.

        In several steps what the script does in one. A server that is replaced in between is closed
        for longer than the lease that it is given here.
        """
        key = lease_key(cluster, broker)
        with translated(self._client):
            info: Any = self._client.info("server")
            run = str(info["run_id"])
            said = self._client.exists(assertion_key(cluster, run, broker))
            before: Any = self._client.get(key)
            if before is not None and int(before) > session:
                return Lease(Renewal.SUPERSEDED, before.decode(), 0)
            if not said:
                return Lease(Renewal.ASSERT, run, 0)
            self._client.set(key, str(session), px=max(1, ttl_ms))
        return Lease(Renewal.ASSERTED, "" if before is None else before.decode(), ttl_ms)

    def holds(self, cluster: str, broker: str) -> bool:
        """Whether this broker is alive."""
        with translated(self._client):
            return bool(self._client.exists(lease_key(cluster, broker)))

    def alive(self, cluster: str) -> set[str]:
        """Brokers that hold a lease, as found one after another: not one instant's picture."""
        prefix = lease_key(cluster, "")
        with translated(self._client):
            names = self._client.scan_iter(match=f"{literal(prefix)}*", count=_PAGE)
            return {name.decode().removeprefix(prefix) for name in names}


def literal(name: str) -> str:
    """Escape what a glob pattern would take for more than itself."""
    return "".join(f"\\{character}" if character in "*?[]^-\\" else character for character in name)
