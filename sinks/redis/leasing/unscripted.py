"""Renews a lease on a server that has no scripts: in several steps, what ``lease.lua`` does in one.

A server that was emptied or replaced has none until the job loads them, and brokers may not.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import redis
from redis.client import Pipeline
from redis.exceptions import WatchError

from sinks.errors import Damaged, Misconfigured, StoreUnavailable
from sinks.redis.leasing import in_touch
from sinks.redis.leasing.lease import NO_SESSION, OLDER_JOB, Lease, Renewal
from sinks.redis.scripts import ASSERTION_KEPT_MS
from sinks.redis.server.connections import address, translate_errors
from sinks.redis.server.replies import REPAIR
from sinks.redis.server.script import no_master
from sinks.redis.server.survey import history_of, replicas_of, required_replicas
from trimtab.ownership import LONGEST_LEASE_MS, REPLICA_WAIT_MS
from trimtab.wire.keys import (
    assertion_key,
    lease_key,
    open_key,
    replicas_key,
    sessions_key,
    successor_key,
)

_LEASE: Final = re.compile(rb"\+?\d+")
"""A lease's text; an agent of this version writes a plus sign in front."""

_MEANWHILE: Final = "the lease changed while it was renewed"


class _Found(NamedTuple):
    """What a renewal in several steps finds."""

    now_ms: int
    history: str
    lease: bytes | None
    last: bytes | None
    """The last process of this name, as ``sessions.lua`` notes it."""
    replicated: bool
    """Whether the store remembers replicas."""


class UnscriptedRenewal:
    """Renews in one Redis. Raises StoreUnavailable and Misconfigured."""

    def __init__(self, client: redis.Redis) -> None:
        self._client = client

    def renew(  # noqa: PLR0913 - as `Leases.renew`
        self,
        cluster: str,
        broker: str,
        session: int,
        ttl_ms: int,
        said: str,
        asked_for_ms: int,
    ) -> Lease:
        """Renew on a server that no job has used yet: brokers may not load scripts.

        Nothing is written if the lease or the open hash changed in between. A server that is
        replaced in between is closed for longer than the lease that is granted here.
        """
        key = lease_key(cluster, broker)
        with translate_errors(self._client), self._client.pipeline() as steps:
            steps.watch(key, open_key(cluster))  # type: ignore[no-untyped-call]  # redis-py has none
            found = self._look(steps, cluster, broker)
            now, history = found.now_ms, found.history
            if found.lease is not None and not _LEASE.fullmatch(found.lease):
                raise Damaged(f"Redis at {address(self._client)}: {key} holds no session; {REPAIR}")
            if refusal := _refusal(session, found.lease, found.last, asked_for_ms):
                return Lease(*refusal, now, history)
            assertion = assertion_key(cluster, history, broker)
            if not said and not steps.exists(assertion):
                return Lease(Renewal.ASSERT, history, 0, now, history)
            granted = min(max(1, ttl_ms), LONGEST_LEASE_MS)
            steps.multi()
            if said:
                steps.set(assertion, said, px=ASSERTION_KEPT_MS)
            steps.set(key, f"+{session}", px=granted)
            try:
                steps.execute()
            except WatchError as error:
                where = address(self._client)
                raise StoreUnavailable(f"Redis at {where}: {_MEANWHILE}") from error
            # After it: a later process that came before has not counted this lease, one that comes
            # now does.
            successor: Any = self._client.get(successor_key(cluster, broker))
        later = _waiting_session(successor)
        if later > session:
            return Lease(Renewal.SUPERSEDED, str(later), 0, now, history)
        must_have_left = REPLICA_WAIT_MS if found.replicated else 0
        held_before = _session_of(found.lease)
        return Lease(Renewal.ASSERTED, held_before, granted, now, history, must_have_left)

    def _look(self, steps: Pipeline, cluster: str, broker: str) -> _Found:
        """Read what the lease script reads; raises if no lease may be granted."""
        # Any: redis-py's answers are unions over protocols; ours is RESP2, bytes.
        clock: Any = steps.time()
        info: Any = steps.info("replication")
        lease: Any = steps.get(lease_key(cluster, broker))
        opened: Any = steps.hmget(
            open_key(cluster), "run_id", "replicas", "replicated", "replicas_set"
        )
        noted: Any = steps.hmget(replicas_key(cluster), "on", "online", "before", "asked")
        last: Any = steps.hget(sessions_key(cluster), broker)
        by_older_job, wanted, replicated, fixed = opened
        now_ms = 1000 * clock[0] + clock[1] // 1000
        *counts, asked = noted
        history, least = self._history_of_master(info, wanted, counts, fixed is not None)
        if least:
            self._require_touch(cluster, info, history, asked, now_ms, least)
        if by_older_job is not None and lease is None:
            raise Misconfigured(OLDER_JOB.format(cluster))
        return _Found(
            now_ms=now_ms,
            history=history,
            lease=lease,
            last=last,
            replicated=replicated is not None or any(map(_number, counts[1:])),
        )

    def _history_of_master(
        self, info: Mapping[str, Any], wanted: bytes | None, noted: Sequence[bytes], fixed: bool
    ) -> tuple[str, int]:
        """The history, and how many replicas must acknowledge; raises if this is a replica, or
        fewer did lately."""
        history = history_of(info)
        if history is None:
            raise no_master(self._client, "replica")
        online, near = _replicas(info)
        least = _number(wanted)
        if not fixed:
            on, then, before = noted
            others = max(_number(before), 0 if on == history else _number(then))
            least = max(least, required_replicas(max(online, others), None))
        if near < least:
            raise no_master(self._client, "isolated", f"{near} of {least}")
        return history.decode(), least

    def _require_touch(  # noqa: PLR0913 - what was read
        self,
        cluster: str,
        info: Mapping[str, Any],
        history: str,
        asked: bytes | None,
        now_ms: int,
        least: int,
    ) -> None:
        """Raise if the server may have hung: what waited in its sockets looks new."""
        offset = int(info["master_repl_offset"])
        touch = in_touch.look(asked, history, now_ms, offset, replicas_of(info), least)
        if touch.note:
            # Also before it is refused: the next request goes by it.
            self._client.hset(replicas_key(cluster), "asked", touch.note)
        if not touch.in_touch:
            raise no_master(self._client, "isolated", f"0 of {least}")


def _replicas(replication: Mapping[str, Any]) -> tuple[int, int]:
    """How many replicas are connected, and how many of them have acknowledged lately."""
    online = [replica for replica in replicas_of(replication) if replica.online]
    return len(online), sum(replica.counts for replica in online)


def _refusal(
    session: int, lease: bytes | None, last: bytes | None, asked_for_ms: int
) -> tuple[Renewal, str, int] | None:
    """Why a process may not take the lease, with `Lease.detail` and `Lease.ms`; ``last`` is the
    last process of its name, as ``sessions.lua`` notes it."""
    holder = -1 if lease is None else int(lease)
    if holder > session:
        return Renewal.SUPERSEDED, _session_of(lease), 0
    if 0 < holder < session:
        # Its lease may last as long as any: brokers have no right to PTTL.
        return Renewal.WAITING, _session_of(lease), LONGEST_LEASE_MS
    is_anothers = last is not None and last.split(b" ")[0] != str(session).encode()
    left = LONGEST_LEASE_MS - asked_for_ms
    if is_anothers and left > 0 and holder != int(NO_SESSION):
        # Its lease may only seem to have ended: by the clock, or as somebody deleted it.
        return Renewal.WAITING, "", left
    return None


def _number(text: bytes | None) -> int:
    """0 where there is none, or somebody has spoiled it, as for ``history.lua``."""
    return int(text) if text is not None and text.isdigit() else 0


def _waiting_session(successor: bytes | None) -> int:
    """The session of the later process that waits; 0 for none. ``lease.lua`` has the form."""
    session = (successor or b"").split(b" ")[0]
    return int(session) if session.isdigit() else 0


def _session_of(lease: bytes | None) -> str:
    return "" if lease is None else lease.decode().removeprefix("+")
