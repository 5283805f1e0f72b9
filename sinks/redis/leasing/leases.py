"""Leases: a broker's proof of life, a key that expires unless it is renewed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec
import redis
from redis.exceptions import NoScriptError

from sinks.errors import Misconfigured
from sinks.redis.leasing.lease import NO_SESSION, OLDER_JOB, Lease, Renewal
from sinks.redis.leasing.unscripted import UnscriptedRenewal
from sinks.redis.scripts import lease_script
from sinks.redis.server.connections import translate_errors
from sinks.redis.server.script import NO_MASTER, no_master, run_loaded
from trimtab.ownership import LONGEST_LEASE_MS
from trimtab.wire.assertion import Assertion
from trimtab.wire.keys import (
    assertions_prefix,
    bundles_key,
    clock_key,
    lease_key,
    open_key,
    ownership_key,
    replicas_key,
    sessions_key,
    successor_key,
)

_PAGE: Final = 1000


class Leases:
    """The leases in one Redis. All methods raise StoreUnavailable and Misconfigured."""

    def __init__(self, client: redis.Redis) -> None:
        self._client = client

    def renew(  # noqa: PLR0913 - the lease's owner, and what its process knows
        self,
        cluster: str,
        broker: str,
        session: int,
        ttl_ms: int,
        assertion: Assertion | None = None,
        asked_for_ms: int = LONGEST_LEASE_MS,
    ) -> Lease:
        """Hold the lease for ``ttl_ms`` from the moment the server handles this, or for less.

        Count the time from before the call. 0 gives the lease up, FOR_THE_NEXT leaves it to another
        process of this name. ``assertion`` tells a closed store what this broker saw.
        ``asked_for_ms`` is how long this process has asked for the lease by its own clock: once
        that is a lease's length, no older process can hold one, even if the server's clock jumped.
        """
        names = [
            open_key(cluster),
            lease_key(cluster, broker),
            successor_key(cluster, broker),
            sessions_key(cluster),
            clock_key(cluster),
            replicas_key(cluster),
            assertions_prefix(cluster),
            ownership_key(cluster),
            bundles_key(cluster),
        ]
        said = "" if assertion is None else msgspec.json.encode(assertion).decode()
        arguments = [str(session), str(ttl_ms), broker, said, str(asked_for_ms)]
        try:
            status, detail, *more = run_loaded(self._client, lease_script(), names, arguments)
        except NoScriptError:
            renewal = UnscriptedRenewal(self._client)
            return renewal.renew(cluster, broker, session, ttl_ms, said, asked_for_ms)
        if status in NO_MASTER:
            raise no_master(self._client, status, detail)
        if status == "outdated":
            raise Misconfigured(OLDER_JOB.format(cluster))
        ms, now, history, must_have_left = more
        return Lease(Renewal(status), detail, int(ms), int(now), history, int(must_have_left))

    def server_time(self) -> float:
        """The server's clock, Unix seconds."""
        with translate_errors(self._client):
            answer: Any = self._client.time()
        seconds, micros = answer
        return float(seconds) + float(micros) / 1e6

    def holds(self, cluster: str, broker: str) -> bool:
        """Whether this broker is alive."""
        with translate_errors(self._client):
            return bool(self._client.exists(lease_key(cluster, broker)))

    def held(self, cluster: str, brokers: Sequence[str]) -> set[str]:
        """Those of some brokers that are alive, a few hundred at most."""
        if not brokers:
            return set()
        with translate_errors(self._client):
            # Any: redis-py's answers are unions over protocols; ours is RESP2, bytes.
            leases: Any = self._client.mget([lease_key(cluster, broker) for broker in brokers])
        found = zip(brokers, leases, strict=True)
        return {broker for broker, lease in found if lease is not None}

    def alive(self, cluster: str) -> set[str]:
        """Brokers that hold a lease, found one after another: not a snapshot of one moment."""
        prefix = lease_key(cluster, "")
        with translate_errors(self._client):
            names = self._client.scan_iter(match=f"{literal(prefix)}*", count=_PAGE)
            return {name.decode(errors="replace").removeprefix(prefix) for name in names}

    def outdated(self, cluster: str) -> set[str]:
        """Brokers with agents of an older version: they keep their bundles, and obey no command."""
        brokers = sorted(self.alive(cluster))
        if not brokers:
            return set()
        with translate_errors(self._client):
            # Any: redis-py's answers are unions over protocols; ours is RESP2, bytes.
            leases: Any = self._client.mget([lease_key(cluster, broker) for broker in brokers])
        old = (b"+", NO_SESSION.encode())
        return {
            broker
            for broker, lease in zip(brokers, leases, strict=True)
            if lease is not None and not lease.startswith(old)
        }


def literal(name: str) -> str:
    """Escape the special characters of a glob pattern."""
    return "".join(f"\\{character}" if character in "*?[]^-\\" else character for character in name)
