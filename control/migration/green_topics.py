"""What green is, and which topics it has already: notes of a plan, by a few questions to it."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any, Final
from urllib.parse import quote

from control.migration.client_urls import CALLER
from control.migration.cycles import Going
from control.migration.green_admin import Ask, NoAnswer
from trimtab.explaining.words import name_some
from trimtab.migration.migration import Target
from trimtab.migration.scopes import CLUSTER, covers, is_system, namespace_of

MOST_NAMESPACES: Final = 20
"""Namespaces whose topics are asked for, the first by name: each is a request."""
MOST_TOPICS: Final = 20
"""Topics that are asked whether they have messages, the first by name: one or two requests each."""
PATIENCE_S: Final = 5.0
"""For all of them. Shorter: a slow green is not looked at; longer: the operator waits for what is
only a note, as the steps of such topics fail without harm."""
_MOST_KNOWN: Final = 1000
"""Names of one namespace that are looked at."""
_NAMED: Final = 5


def kind_notes(target: Target, asked: Ask) -> Iterator[str]:
    """What cannot be asked of green, by what it is."""
    try:
        clusters = asked(target.web, "clusters")
    except NoAnswer:
        return
    if _answers(target.web, CALLER, asked):
        yield (
            f"note: target: {target.web} is trimtab api, which makes no topic: brokers that ask "
            "for Pulsar's paths need the URLs of green's own brokers as serviceUrl"
        )
        return
    names = clusters if isinstance(clusters, list) else []
    paths = (f"/trimtab/v1/clusters/{quote(str(name))}/migrations" for name in names)
    if not any(_answers(target.web, path, asked) for path in paths):
        yield (
            "note: target: is a Pulsar, which gives no topic back: a rollback ends topics there "
            "that took no write, and their clients stay with it until they are restarted with the "
            "URL of this cluster"
        )


def topic_notes(
    target: Target,
    going: Going,
    asked: Ask,
    stays: Callable[[str, Sequence[str]], Collection[str]] = lambda *_: (),
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[str]:
    """Topics of what is going there that green has already, with messages. Blue's own are not known
    here, so each may be another's. ``stays``: those of a namespace that an earlier migration has
    left on green."""
    until, looked, found = clock() + PATIENCE_S, 0, list[str]()
    for topic in islice(_there(target.web, going, asked, stays), MOST_TOPICS):
        if clock() > until:
            break
        looked += 1
        if _is_written(target.web, topic, asked):
            found.append(topic)
    if found:
        yield (
            f"note: target: has messages already in {name_some(found, _NAMED)}: if it is here too, "
            "its step fails until it is deleted there (pulsar-admin topics delete), or left out of "
            f"the scope; of the {looked} topics that were looked at"
        )


def _there(
    web: str,
    going: Going,
    asked: Ask,
    stays: Callable[[str, Sequence[str]], Collection[str]],
) -> Iterator[str]:
    """The topics that would meet one there, by namespace."""
    scope = namespace_of(going.scope)
    for namespace in [scope] if scope else sorted(going.namespaces())[:MOST_NAMESPACES]:
        names = [going.scope]
        if going.scope in (CLUSTER, namespace):
            try:
                told = asked(web, f"persistent/{quote(namespace)}")
            except NoAnswer:
                continue
            listed = sorted(map(str, told)) if isinstance(told, list) else []
            names = [each for each in listed if _goes(going, each)][:_MOST_KNOWN]
        known = stays(namespace, names)
        yield from (each for each in names if each not in known)


def _goes(going: Going, topic: str) -> bool:
    """Whether a topic of that name would go there."""
    return not is_system(topic) and not any(covers(each, topic) for each in going.apart)


def _is_written(web: str, topic: str, asked: Ask) -> bool:
    """Whether green's topic has ever taken a message, as far as anything there still shows it."""
    domain, _, rest = topic.partition("://")
    path = f"{domain}/{quote(rest)}"
    with suppress(NoAnswer):
        return _shows_writes(asked(web, f"{path}/internalStats"))
    with suppress(NoAnswer):
        told = asked(web, f"{path}/stats")
        return isinstance(told, dict) and bool(told.get("msgInCounter"))
    return False


def _shows_writes(told: Any) -> bool:
    """By Pulsar's internal stats: counters begin at nothing when a topic is unloaded, and ledgers
    go once all is read; what is left then are positions, LEDGER:ENTRY, of which -1 is before the
    first entry."""
    if not isinstance(told, Mapping):
        return False
    cursors = told.get("cursors")
    rows = [row for row in cursors.values() if isinstance(row, Mapping)] if cursors else []
    positions = [told.get("lastConfirmedEntry"), *(row.get("markDeletePosition") for row in rows)]
    return bool(
        told.get("entriesAddedCounter")
        or told.get("numberOfEntries")
        or any(str(each or "").rpartition(":")[2].isdigit() for each in positions)
    )


def _answers(web: str, path: str, asked: Ask) -> bool:
    with suppress(NoAnswer):
        asked(web, path)
        return True
    return False
