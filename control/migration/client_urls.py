"""Checks the URLs that clients are sent to: that somebody listens there, and that it is green.

By addresses, not by names: a broker of blue may be spelled in many ways.
"""

from __future__ import annotations

import socket
from collections.abc import Collection, Iterator
from contextlib import suppress
from functools import partial
from typing import Any, Final
from urllib.parse import quote

from control.migration.green_admin import TIMEOUT_S, Ask, NoAnswer
from sinks.deadline import within
from trimtab.intent_rules import Flaw, IntentRule
from trimtab.migration.flaws import hosts_of
from trimtab.migration.migration import Target

MOST_RESOLVED: Final = 100
"""Brokers of blue whose names are resolved, the first by name: each may take a question to DNS."""

CALLER: Final = "/trimtab/v1/caller"
"""What only `trimtab api` answers."""

Address = tuple[str, int]
"""An IP address and a port."""


def client_flaws(
    target: Target, clusters: Collection[str], brokers: Collection[str], asked: Ask
) -> Iterator[Flaw]:
    """What is wrong with where clients would be sent; ``clusters`` are those of green's web
    service, ``brokers`` where blue's listen, as host:port."""
    told = _said(target.web, clusters, asked) if clusters else []
    for name in ("brokerServiceUrl", "brokerServiceUrlTls"):
        url = str(getattr(target, name))
        if not url:
            continue
        servers = sorted(hosts_of(url))
        there = _addresses(servers)
        said = sorted({str(each[name]) for each in told if each.get(name)})
        if there & _addresses(_of_blue(servers, brokers)):
            problem = f"{name}: {url} is a broker of the cluster that is left, by another name"
            yield IntentRule.INVALID_TARGET, f"{problem}: green is blue"
        elif said and not there & _addresses(sorted({s for each in said for s in hosts_of(each)})):
            problem = f"{name}: {url} is not what green says of itself: {', '.join(said)}"
            yield (
                IntentRule.INVALID_TARGET,
                f"{problem}; if it leads there all the same, set it there: "
                "pulsar-admin clusters update",
            )
        elif not any(_listens(each) for each in servers):
            yield IntentRule.UNREACHABLE_TARGET, f"{name}: nobody listens at {url}"


def _of_blue(servers: Collection[str], brokers: Collection[str]) -> list[str]:
    """Those of blue's brokers that may be one of the servers by another name."""
    ports = {server.rpartition(":")[2] for server in servers}
    return [each for each in sorted(brokers) if each.rpartition(":")[2] in ports][:MOST_RESOLVED]


def _said(web: str, clusters: Collection[str], asked: Ask) -> list[dict[str, Any]]:
    """What green's clusters say of themselves, as Pulsar's ClusterData; nothing if they may not."""
    with suppress(NoAnswer):
        asked(web, CALLER)
        # A job's control plane names the URLs of one broker, and others take clients too.
        return []
    found = list[dict[str, Any]]()
    for cluster in clusters:
        with suppress(NoAnswer):
            told = asked(web, f"clusters/{quote(cluster)}")
            if isinstance(told, dict):
                found.append(told)
    return found


def _addresses(servers: Collection[str]) -> set[Address]:
    """Where the servers are; nothing of those that cannot be resolved in time."""
    found = set[Address]()
    with suppress(TimeoutError):
        within(TIMEOUT_S, partial(_resolve, servers, found))
    return set(found)


def _resolve(servers: Collection[str], found: set[Address]) -> None:
    for server in servers:
        host, _, port = server.rpartition(":")
        with suppress(OSError, UnicodeError):
            for *_, place in socket.getaddrinfo(
                host.strip("[]"), int(port), type=socket.SOCK_STREAM
            ):
                found.add((str(place[0]), int(place[1])))


def _listens(server: str) -> bool:
    host, _, port = server.rpartition(":")
    try:
        within(TIMEOUT_S, partial(_connect, host.strip("[]"), int(port)))
    except (OSError, UnicodeError):
        return False
    return True


def _connect(host: str, port: int) -> None:
    socket.create_connection((host, port), TIMEOUT_S).close()
