"""Asks green, by Pulsar's admin paths, whether topics can go there."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from typing import Any, Final
from urllib.error import HTTPError, URLError
from urllib.parse import quote
from urllib.request import Request, urlopen

from trimtab.cluster.existing import Flaw
from trimtab.intent_rules import IntentRule
from trimtab.migration.flaws import hosts_of
from trimtab.migration.migration import Target

TIMEOUT_S: Final = 3.0
"""Of one request. Shorter: a busy cluster counts as absent; longer: the operator waits."""
MOST_HOPS: Final = 8
"""Clusters of a chain that are asked. More are no chain that anybody means."""
_MOST_BYTES: Final = 1 << 20


class NoAnswer(Exception):
    """Green does not answer what it is asked; says why."""


def green_flaws(target: Target, brokers: Collection[str]) -> Iterator[Flaw]:
    """What is wrong with green, as it answers now; ``brokers`` are blue's, as host:port.

    It must answer, have a broker, and not migrate back to blue by itself or by others.
    """
    web = target.web
    try:
        names = ask(web, "clusters")
        found = [each for each in names if each != "global"] if isinstance(names, list) else []
        if not any(ask(web, f"brokers/{quote(str(name))}") for name in found):
            problem = f"target: {web} has no broker that is alive"
            yield IntentRule.UNREACHABLE_TARGET, problem
        way = find_cycle(web, brokers)
        if way:
            problem = f"target: green migrates too, and its way leads back here: {' -> '.join(way)}"
            yield IntentRule.MIGRATION_CYCLE, problem
    except NoAnswer as error:
        yield IntentRule.UNREACHABLE_TARGET, f"target: {error}"


def find_cycle(web: str, brokers: Collection[str]) -> list[str]:
    """The URLs that lead from green back to one of ``brokers``; none if no migration does."""
    way, waiting = list[str](), [web]
    while waiting and len(way) < MOST_HOPS:
        here = waiting.pop()
        way.append(here)
        for name in _clusters_of(here):
            after = _migrated_to(here, str(name))
            if any(host in brokers for host in hosts_of(after)):
                return [*way, after]
            if after and after not in way:
                waiting.append(after)
    return []


def _clusters_of(web: str) -> list[Any]:
    """The clusters of a web service; none if it does not answer: its way ends there."""
    try:
        found = ask(web, "clusters")
    except NoAnswer:
        return []
    return found if isinstance(found, list) else []


def ask(web: str, path: str) -> Any:
    """What an admin path answers; raises NoAnswer."""
    url = f"{web.rstrip('/')}/admin/v2/{path}"
    try:
        # S310: `target_flaws` has checked that it begins with http or https.
        with urlopen(Request(url), timeout=TIMEOUT_S) as answer:
            return json.loads(answer.read(_MOST_BYTES))
    except HTTPError as error:
        raise NoAnswer(f"{url} answers {error.code}") from error
    except (URLError, OSError, ValueError) as error:
        raise NoAnswer(f"{url} does not answer: {getattr(error, 'reason', error)}") from error


def _migrated_to(web: str, cluster: str) -> str:
    """Where a cluster migrates to; empty if it does not, or does not say."""
    try:
        told = ask(web, f"clusters/{quote(cluster)}/migrate")
    except NoAnswer:
        # 404 before the first migration.
        return ""
    urls = told.get("migratedClusterUrl") or {} if isinstance(told, dict) else {}
    return str(urls.get("serviceUrl") or "") if told.get("migrated") else ""
