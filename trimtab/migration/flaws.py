"""What is wrong with a migration that is asked for, as far as no network needs to be asked."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Final
from urllib.parse import urlsplit

from trimtab.migration.migration import Gate, Target, Wave
from trimtab.migration.scopes import CLUSTER, is_scope, overlap, whole_topic

MOST_WAVES: Final = 100
"""Waves of one migration. Fewer: large tenants share a wave; more: its progress fills an intent."""
MOST_SCOPES: Final = 1000
"""Scopes of one wave."""
MOST_BACKLOG: Final = 1 << 53
"""Most backlog of a gate: JSON has no bound, and the state keeps 64 bits."""
_PORTS: Final = {"http": 80, "https": 443, "pulsar": 6650, "pulsar+ssl": 6651}
"""The port of a URL that names none, by scheme."""
_SCHEMES: Final = {
    "serviceUrl": ("http",),
    "serviceUrlTls": ("https",),
    "brokerServiceUrl": ("pulsar",),
    "brokerServiceUrlTls": ("pulsar+ssl",),
}


def target_flaws(target: Target | None, brokers: Collection[str]) -> Iterator[str]:
    """What is wrong with green's URLs; ``brokers`` are where blue's own listen, as host:port."""
    if target is None or not target.urls():
        yield "target: has no URL of green; give serviceUrl and brokerServiceUrl"
        return
    if not target.web:
        yield "target: needs serviceUrl or serviceUrlTls, where topics are created on green"
    if not (target.brokerServiceUrl or target.brokerServiceUrlTls):
        yield "target: needs brokerServiceUrl or brokerServiceUrlTls, where clients are sent"
    for name, url in target.urls().items():
        problem = _url_problem(name, url)
        if problem:
            yield f"{name}: {problem}"
        elif any(each in brokers for each in hosts_of(url)):
            yield f"{name}: {url} is a broker of the cluster that is left: green is blue"


def scope_flaws(scope: str, waves: Sequence[Wave], gate: Gate) -> Iterator[str]:
    """What is wrong with a scope, its waves and the gate between them."""
    if not is_scope(scope):
        yield (
            f"scope: {scope[:200]!r} is not {CLUSTER}, tenant/namespace, or "
            "persistent://tenant/namespace/topic"
        )
        # The rest is judged all the same: everything that is wrong is said at once.
        scope = CLUSTER
    elif scope != whole_topic(scope):
        yield f"scope: {_say_partition(scope)}"
    if len(waves) > MOST_WAVES:
        yield f"waves: are more than {MOST_WAVES}"
    for number, wave in enumerate(waves[:MOST_WAVES], 1):
        yield from _wave_flaws(f"waves: wave {number}", wave, scope)
    if not 0 <= gate.backlog <= MOST_BACKLOG:
        yield "gate: backlog must be from 0 to 2^53"
    if not 0.0 <= gate.errors <= 1.0:
        yield "gate: errors must be a share from 0 to 1"


def _wave_flaws(name: str, wave: Wave, scope: str) -> Iterator[str]:
    if not wave.scopes or len(wave.scopes) > MOST_SCOPES:
        yield f"{name} needs 1 to {MOST_SCOPES} scopes"
    if not 0.0 < wave.share <= 1.0:
        yield f"{name}: share must be above 0, and 1 at most"
    for each in wave.scopes[:MOST_SCOPES]:
        if not is_scope(each):
            yield f"{name}: {each[:200]!r} is no scope"
        elif each != whole_topic(each):
            yield f"{name}: {_say_partition(each)}"
        elif not overlap(each, scope):
            yield f"{name}: {each} is not in {scope}"


def _say_partition(scope: str) -> str:
    whole = whole_topic(scope)
    return f"{scope} is a partition, and goes with its topic: name {whole}"


def servers_of(url: str) -> list[str]:
    """The servers of a URL, which may list several after commas, as they stand there."""
    servers = url.partition("://")[2].partition("/")[0]
    return [server for server in servers.split(",") if server]


def hosts_of(url: str) -> set[str]:
    """The host:port of each server of a URL, spelled as brokers' ids are."""
    scheme = url.partition("://")[0]
    return {_spelled(scheme, server) for server in servers_of(url)}


def _spelled(scheme: str, server: str) -> str:
    """With its port, in lower case; as it stands if it is no host and port."""
    try:
        port = urlsplit(f"{scheme}://{server}").port
    except ValueError:
        return server
    host, colon, digits = server.lower().rpartition(":")
    if not colon or not digits.isdigit():
        host = server.lower().rstrip(":")
    return f"{host}:{_PORTS.get(scheme, 0) if port is None else port}"


def _url_problem(name: str, url: str) -> str:
    scheme, _, rest = url.partition("://")
    if scheme not in _SCHEMES[name]:
        return f"{url[:200]!r} does not begin with {_SCHEMES[name][0]}://"
    if len(url) > 2000 or not rest.isascii() or any(c.isspace() for c in url):
        return "is too long, or has characters that no URL has"
    try:
        for server in servers_of(url):
            parts = urlsplit(f"{scheme}://{server}")
            if not parts.hostname or parts.port == 0 or "@" in server:
                return f"{server!r} is not a host and port"
    except ValueError as error:
        return str(error)
    return "" if servers_of(url) else "names no host"
