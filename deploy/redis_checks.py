"""The doctor's checks of the user's own Redis: its kind, its durability, its replicas."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from itertools import islice
from typing import Final, NamedTuple
from urllib.parse import urlsplit

import redis

from deploy import redis_server
from deploy.finding import Finding, bad, good
from sinks.errors import Misconfigured, SinkError
from sinks.redis.odd_keys import find_odd_keys
from sinks.redis.server.connections import address, redis_client, translate_errors
from sinks.redis.server.sentinels import MasterPool
from sinks.redis.server.survey import Survey, survey, unfit
from trimtab.wire.keys import open_key, ownership_key

_TOLD: Final = {
    "appendonly": ("persistence", "aof_enabled", "yes"),
    "maxmemory-policy": ("memory", "maxmemory_policy", "noeviction"),
}
"""By setting: the section and the field of INFO that tell it, and what is needed. INFO shows no
password, so the job's user may read it; CONFIG GET shows all."""

_SHOWN: Final = 20
"""Most keys that are named."""

_FSYNC: Final = ("always", "everysec")
"""everysec may lose the last second, which is rebuilt from the journal in Kafka."""


class _Target(NamedTuple):
    client: redis.Redis
    tls: bool

    @property
    def where(self) -> str:
        """The address for redis-cli, without user or password; for Sentinels, their master's."""
        pool = self.client.connection_pool
        found = isinstance(pool, MasterPool) and pool.master
        return f"{'rediss' if self.tls else 'redis'}://{found or address(self.client)}"

    def command(self, words: str) -> str:
        """A redis-cli command for a shell."""
        return f"redis-cli -u {self.where} {words}"

    def mend(self, cluster: str, key: str) -> str:
        """A command that closes a cluster, so that the job rebuilds its records, and in the same
        step deletes one of its keys, unless it is empty."""
        steps = [] if key == open_key(cluster) else ['redis.call("HDEL",KEYS[1],"replid")']
        steps += ['redis.call("DEL",KEYS[2])'] if key else []
        keys = f"2 {shlex.quote(open_key(cluster))} {shlex.quote(key)}"
        who = "--user ADMINISTRATOR --askpass"
        return self.command(f"{who} EVAL {shlex.quote(' '.join(steps))} {keys}")

    def ask_administrator(self, words: str) -> str:
        """A CONFIG command for a shell, which asks for the password of somebody who may."""
        return self.command(f"--user ADMINISTRATOR --askpass CONFIG {words}")


def check_redis(url: str, replicas: int | None = None) -> Iterator[Finding]:
    """Check a Redis; ``replicas`` is the job's setting ``redis_replicas``."""
    try:
        client = redis_client(url)
    except Misconfigured as error:
        # Its text shows no password, unlike the address.
        yield bad("Redis", str(error), "export TRIMTAB_REDIS_URL=redis://user:password@host:6379/0")
        return
    with client:
        it = _Target(client, tls=urlsplit(url).scheme.startswith("rediss"))
        try:
            yield from _check_sentinels(it)
            found = survey(client)
            if refusal := unfit(found.mode):
                yield bad("Redis", f"{it.where}: {refusal}", it.command("INFO server"))
                return
            yield _check_version(it, found)
            yield from _check_durability(it)
            yield _check_replicas(it, found, replicas)
            yield from _check_keys(it)
        except SinkError as error:
            # For a refused user or password: redis-cli asks for the password.
            ask = "--askpass ping" if isinstance(error, Misconfigured) else "ping"
            yield bad("Redis", str(error), it.command(ask))


def _check_sentinels(it: _Target) -> Iterator[Finding]:
    pool = it.client.connection_pool
    if not isinstance(pool, MasterPool):
        return
    answers = pool.sentinels.each()
    named = [answer for answer in answers.values() if not isinstance(answer, SinkError)]
    missing = [str(answer) for answer in answers.values() if isinstance(answer, SinkError)]
    detail = (
        f"{len(named)} of {len(answers)} name {', '.join(sorted(set(map(str, named)))) or 'none'}"
    )
    if missing or len(set(named)) > 1:
        first = next(iter(answers))
        command = f"redis-cli -h {first.name} -p {first.port} SENTINEL MASTERS"
        yield bad("Redis Sentinels", "; ".join([detail, *missing]), command)
    else:
        yield good("Redis Sentinels", detail)


def _check_version(it: _Target, found: Survey) -> Finding:
    detail = f"{it.where} is {found.version}"
    if tuple(map(int, found.version.split(".")[:2])) < redis_server.OLDEST:
        return bad("Redis", f"{detail}, needs 7.0", "sudo apt-get install redis-server")
    return good("Redis", detail)


def _check_durability(it: _Target) -> Iterator[Finding]:
    """Check that acknowledged writes survive a restart, and are never evicted."""
    for setting, (section, told, needed) in _TOLD.items():
        try:
            with translate_errors(it.client):
                value = str(it.client.info(section).get(told))
        except Misconfigured:
            lacking = f"this user lacks the right +info|{section}, needs {needed}"
            yield bad(f"Redis {setting}", lacking, it.ask_administrator(f"GET {setting}"))
            continue
        found = {"0": "no", "1": "yes"}.get(value, value)
        yield _compare(it, setting, found, (needed,))
    try:
        with translate_errors(it.client):
            found = str(it.client.config_get("appendfsync").get("appendfsync"))
    except Misconfigured:
        # Neither the job's own user nor those of hosted services may. Its default is everysec.
        asking = it.ask_administrator("GET appendfsync")
        unread = "this user lacks the right +config|get, so it was not checked"
        yield good("Redis appendfsync", f"{unread}; needs {' or '.join(_FSYNC)}: {asking}")
    else:
        yield _compare(it, "appendfsync", found, _FSYNC)


def _compare(it: _Target, setting: str, found: str, accepted: tuple[str, ...]) -> Finding:
    name = f"Redis {setting}"
    if found in accepted:
        return good(name, found)
    command = it.ask_administrator(f"SET {setting} {accepted[0]}")
    return bad(name, f"{found}, needs {' or '.join(accepted)}", command)


def _check_keys(it: _Target) -> Iterator[Finding]:
    """Check that no other program has written to the clusters' keys."""
    try:
        odd = list(islice(find_odd_keys(it.client), _SHOWN))
    except Misconfigured:
        yield good("Redis keys", "this user lacks the rights to look at them, so not checked")
        return
    if not odd:
        yield good("Redis keys", "as trimtab writes them")
    for key, cluster, what in odd:
        # A record that cannot be read is restored with the key left where it is.
        goes = "" if key == ownership_key(cluster) and what.startswith("unreadable") else key
        yield bad(
            "Redis keys", f"{key} is {what}: see who else writes there", it.mend(cluster, goes)
        )


def _check_replicas(it: _Target, found: Survey, setting: int | None) -> Finding:
    """Check the replicas: how many there are, and how many must acknowledge writes."""
    if found.role != "master":
        return bad(
            "Redis role",
            f"{it.where} is a replica of {found.master}; name the master, or its Sentinels",
            it.command("ROLE"),
        )
    problem = found.shortage(setting)
    detail = found.rule(setting)
    if problem:
        return bad("Redis replicas", f"{detail}; {problem}", it.command("INFO replication"))
    return good("Redis replicas", detail)
