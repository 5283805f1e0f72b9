"""Finds whether topics that would go to green would come back: clusters that migrate in a circle.

begin at green, with the scope that would go there
for each migration of a cluster there that has topics of the scope:
  go on to where it leads, with the topics that both have
  it leads to blue: a cycle
One that was rolled back counts while topics stay where it took them: the cluster that they left
sends their clients there, and does not take them again.
A cluster, a namespace and a topic may each go elsewhere. Clusters of trimtab say all that migrates;
of a Pulsar the cluster's flag is asked, and those of blue's namespaces, which share its URL.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from control.migration.green_admin import BROKERS, Ask, Elsewhere, NoAnswer
from trimtab.migration.flaws import hosts_of
from trimtab.migration.life import CLAIMING
from trimtab.migration.scopes import CLUSTER, common, covers, namespace_of, overlap

MOST_HOPS: Final = 8
"""Clusters of a chain that are asked. More are no chain that anybody means."""
MOST_NAMESPACES: Final = 1000
"""Namespaces whose flag a Pulsar is asked for, the first by name: each is a request, and it is only
asked where its cluster has a URL to send them to."""
_CLAIMING: Final = frozenset(state.value for state in CLAIMING)


class Going(NamedTuple):
    """What would go to green."""

    scope: str = CLUSTER
    apart: Collection[str] = ()
    """Scopes inside that stay where they are."""
    namespaces: Callable[[], Collection[str]] = tuple
    """Those that blue has."""

    def takes(self, scope: str) -> bool:
        """Whether a scope, or part of it, would go."""
        return overlap(self.scope, scope) and not any(covers(each, scope) for each in self.apart)


class _Edge(NamedTuple):
    """A migration of a cluster that is asked: topics of a scope go to a web service."""

    scope: str
    web: str
    apart: Collection[str] = ()


def find_cycles(
    web: str, brokers: Collection[str], going: Going, asked: Ask
) -> dict[tuple[str, ...], list[str]]:
    """The ways, as URLs, that lead from green back to one of ``brokers``, each with the scopes of
    which topics would take it; none if no migration does."""
    found = defaultdict[tuple[str, ...], list[str]](list)
    waiting: list[tuple[tuple[str, ...], str]] = [((web,), going.scope)]
    seen = {(web, going.scope)}
    while waiting:
        way, scope = waiting.pop()
        for edge in _onward(way[-1], going._replace(scope=scope), asked):
            if not overlap(edge.scope, scope):
                continue
            both = common(edge.scope, scope)
            if not going.takes(both) or any(covers(each, both) for each in edge.apart):
                continue
            if _leads_to(edge.web, brokers, asked):
                found[*way, edge.web].append(both)
            elif (edge.web, both) not in seen and len(way) < MOST_HOPS:
                seen.add((edge.web, both))
                waiting.append(((*way, edge.web), both))
    return {way: sorted(set(scopes)) for way, scopes in sorted(found.items())}


def living(web: str, asked: Ask) -> dict[str, list[str]]:
    """The clusters of a web service, with the ids of their living brokers; raises NoAnswer.

    Without those that it only knows of, as a cluster does that replicates to others: it sends who
    asks for them there."""
    found = dict[str, list[str]]()
    for name in _clusters_of(web, asked):
        with suppress(Elsewhere):
            told = asked(web, f"{BROKERS}{quote(name)}")
            found[name] = list(map(str, told)) if isinstance(told, list) else []
    return found


def is_blue(alive: Mapping[str, Collection[str]], brokers: Collection[str]) -> bool:
    """Whether each cluster of a web service has brokers of blue.

    One that has not is green: blue may be known to the same web service."""
    found = [ids for ids in alive.values() if ids]
    return bool(found) and all(any(each in brokers for each in ids) for ids in found)


def goes_on(web: str, namespace: str, asked: Ask) -> bool:
    """Whether a namespace migrates by itself from green; not if green does not have it."""
    try:
        told = asked(web, f"namespaces/{quote(namespace)}")
    except NoAnswer:
        return False
    return isinstance(told, dict) and bool(told.get("migrated"))


def _onward(web: str, going: Going, asked: Ask) -> Iterator[_Edge]:
    """What migrates from the clusters of a web service; nothing if it does not answer."""
    try:
        names = _clusters_of(web, asked)
    except NoAnswer:
        return
    for name in names:
        try:
            told = asked(web, f"/trimtab/v1/clusters/{quote(name)}/migrations")
        except NoAnswer:
            told = None
        if isinstance(told, list):
            yield from _migrations(told)
        else:
            yield from _flags(web, name, going, asked)


def _migrations(told: Iterable[Any]) -> Iterator[_Edge]:
    """All that migrates from a cluster of trimtab; what another version says is left out."""
    for each in told:
        it = each.get("migration") if isinstance(each, dict) else None
        if isinstance(it, dict) and (it.get("state") in _CLAIMING or _stays(it)):
            scope, web = it.get("scope"), _web_of(it.get("target"))
            if isinstance(scope, str) and web:
                yield _Edge(scope, web, tuple(map(str, it.get("apart") or ())))


def _stays(migration: Mapping[str, Any]) -> bool:
    """Whether topics stay on the other cluster."""
    counts = migration.get("counts")
    waves = counts if isinstance(counts, list) else []
    return any(isinstance(each, dict) and each.get("stays") for each in waves)


def _flags(web: str, cluster: str, going: Going, asked: Ask) -> Iterator[_Edge]:
    """What migrates from a cluster of Pulsar: all of it, or namespaces, to its one URL."""
    try:
        told = asked(web, f"clusters/{quote(cluster)}/migrate")
    except NoAnswer:
        # 404 before it has a URL.
        return
    after = _web_of(told.get("migratedClusterUrl")) if isinstance(told, dict) else ""
    if not after:
        return
    if told.get("migrated"):
        yield _Edge(CLUSTER, after)
        return
    alone = namespace_of(going.scope)
    for namespace in [alone] if alone else sorted(going.namespaces())[:MOST_NAMESPACES]:
        if goes_on(web, namespace, asked):
            yield _Edge(namespace, after)


def _web_of(urls: Any) -> str:
    """The web service of a ClusterUrl; empty if it has none."""
    said = urls if isinstance(urls, dict) else {}
    return str(said.get("serviceUrl") or said.get("serviceUrlTls") or "")


def _leads_to(web: str, brokers: Collection[str], asked: Ask) -> bool:
    """Whether a URL is one of blue's brokers, or of what stands in front of them."""
    if any(host in brokers for host in hosts_of(web)):
        return True
    try:
        return is_blue(living(web, asked), brokers)
    except NoAnswer:
        return False


def _clusters_of(web: str, asked: Ask) -> list[str]:
    """The clusters of a web service; raises NoAnswer."""
    found = asked(web, "clusters")
    return [str(each) for each in found if each != "global"] if isinstance(found, list) else []
