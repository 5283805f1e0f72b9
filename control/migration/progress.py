"""What is shown of a migration: how far each namespace is, and where single topics are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from control.migration.waiting_bundles import STILL_MS, WaitingBundle
from trimtab.explaining.words import format_count, name_some
from trimtab.migration.kept import Migrations
from trimtab.migration.life import MigrationState
from trimtab.migration.migration import Counts, Migration, Target, Wave, sum_up
from trimtab.migration.progress import count_lost, estimate_end
from trimtab.migration.scopes import CLUSTER, namespace_of, overlap
from trimtab.migration.topic_life import LEFT, TopicState
from trimtab.nearby import nearby
from trimtab.wire.lookup import ServiceUrls
from trimtab.wire.topics import TopicRecord, Waiting


class Counting(Protocol):
    """`sinks.redis.migrations.Migrations`."""

    def counts(self, cluster: str, migration: str) -> dict[str, Counts]: ...


class Topics(Protocol):
    """`sinks.redis.topics.TopicStore`."""

    def of_namespace(self, cluster: str, namespace: str) -> Iterator[tuple[str, TopicRecord]]: ...


@dataclass(frozen=True, slots=True)
class Told:
    """A migration with what is counted of it now."""

    migration: Migration
    total: Counts
    left: int
    """Topics that are still on blue."""
    namespaces: Mapping[str, Counts]
    ends: int | None
    """When the last topic will have left at the pace so far (epoch ms); None: not known."""
    still: int
    """When it last came further (epoch ms), if it stands still and nobody has paused it; else 0.
    """
    bundles: tuple[WaitingBundle, ...]
    """The first bundles that it waits for, if it stands still."""
    lost: int = 0
    """Topics whose records the store lost before a rollback, at least; 0 if none are known."""


@dataclass(frozen=True, slots=True, order=True)
class TopicTold:
    """One topic of a report."""

    topic: str
    state: str
    backlog: int
    subscription: str
    """The one that has the most of the backlog; empty if none has."""
    subscriptions: tuple[Waiting, ...]
    """All that have some of it, those with the most; empty before the topic is terminated."""
    regions: tuple[Waiting, ...]
    """The clusters of other regions that lack messages: its writes end once they have them."""
    more: int
    """How many subscriptions, or regions, there are beside those that are named."""
    problem: str
    began: bool
    """It began on green: blue never had it."""
    lost: bool = False
    """Blue had lost it when a rollback asked for it."""


@dataclass(frozen=True, slots=True)
class Report:
    """The result of a migration."""

    told: Told
    stays: tuple[TopicTold, ...]
    """Topics that a rollback leaves on green: they began there, or it has taken writes of them."""
    failing: tuple[TopicTold, ...]
    """Topics whose last step failed."""
    waiting: tuple[TopicTold, ...]
    """Topics of the waves so far that have not left blue, those with the most messages first: what
    the end, or the next wave, waits for."""
    cut: bool
    """Whether there are more of any."""
    lost: int
    """Topics whose records the store has lost, at least: nothing is known of them."""


LOST: Final = (
    "blue has lost it, so green keeps it and its clients; what a subscription named here had not "
    "read is in a backup of blue alone: send that to green"
)
"""Of a topic that could not come back, and what there is to do."""
GONE: Final = "it has gone on from green to {}, and stays there: look for it there"
"""Of a topic that a rollback found to have gone on."""
MOST_SCOPES: Final = 20
"""Scopes that one note names. More: too many to read."""


def standing_notes(scope: str, target: Target, kept: Migrations) -> Iterator[str]:
    """Notes on what a migration of a scope leaves where it is, because it migrated before."""
    greens = defaultdict[str, list[str]](list)
    for each in kept.inside(scope):
        greens["" if each.target == target else each.target.web].append(each.scope)
    for web, scopes in sorted(greens.items()):
        names = name_some(sorted(scopes), MOST_SCOPES)
        if web:
            yield f"note: these stay on {web}, where they have migrated: {names}"
        else:
            yield f"note: these are there already, and nothing is done for them: {names}"


def one_way_notes(target: Target, urls: Iterable[ServiceUrls]) -> Iterator[str]:
    """Which clients of blue find no way to green: ``urls`` are those of blue's brokers."""
    here = tuple(urls)
    for name, there, kind in (
        ("brokerServiceUrl", any(each.pulsar for each in here), "without TLS"),
        ("brokerServiceUrlTls", any(each.pulsar_tls for each in here), "with TLS"),
    ):
        if there and not getattr(target, name):
            yield (
                f"note: target: has no {name}: clients that connect {kind}, as they may here, find "
                "no way there"
            )


def unknown_notes(
    scope: str, waves: Sequence[Wave], namespaces: Callable[[], Collection[str]]
) -> Iterator[str]:
    """Which namespaces have no bundle that a migration or its waves name: they may be misspelt, or
    have no client yet."""
    parts = [("scope", scope), *(("waves", each) for wave in waves for each in wave.scopes)]
    named = {namespace_of(each): member for member, each in reversed(parts) if each != CLUSTER}
    known = namespaces() if named else ()
    for namespace in sorted(named.keys() - known)[:MOST_SCOPES]:
        near = nearby(namespace, known)
        yield f"note: {named[namespace]}: no bundle of {namespace} is known; {near}"


def unnamed_notes(
    scope: str, waves: Sequence[Wave], is_known: Callable[[str], bool]
) -> Iterator[str]:
    """Which topics of the scope and the waves have no record: one that is misspelt would leave a
    migration of nothing, which completes. ``is_known``: whether a topic has a record."""
    of_waves = [each for wave in waves for each in wave.scopes]
    for member, scopes in (("scope", [scope]), ("waves", of_waves)):
        topics = [each for each in dict.fromkeys(scopes) if "://" in each]
        new = [each for each in topics[:MOST_SCOPES] if not is_known(each)]
        if new:
            yield (
                f"note: {member}: no broker has named {', '.join(new)}; none names a topic before "
                "a migration has it, so look whether that is how it is written"
            )


def wave_notes(
    scope: str, waves: Sequence[Wave], namespaces: Callable[[], Collection[str]]
) -> Iterator[str]:
    """How many of the namespaces that are known each wave has topics of: one that was meant for an
    early wave, and is in none, goes with the last."""
    if not waves:
        return
    known = {each for each in namespaces() if overlap(each, scope)}
    named = set[str]()
    for number, wave in enumerate(waves, 1):
        # By name: a hundred waves may name a thousand topics each, and a cluster has as many
        # namespaces.
        parts = {part: namespace_of(part) for part in wave.scopes}
        topics = [part for part in parts if "://" in part]
        whole = {namespace for part, namespace in parts.items() if "://" not in part}
        found = known if "" in whole else known & whole
        counts = [format_count(len(found), "namespace")] if whole else []
        counts += [format_count(len(topics), "topic")] if topics else []
        of = "their topics" if whole else "them"
        share = f" ({100 * wave.share:.3g}% of {of})" if wave.share < 1 else ""
        yield f"note: wave {number}: {' and '.join(counts)}{share}"
        named |= known if "" in whole else known & set(parts.values())
    rest = format_count(len(known) - len(named), "namespace")
    yield f"note: last: what is in no wave, with all of {rest} that no wave names"


def tell(
    migration: Migration,
    counting: Counting,
    now_ms: int,
    waiting: Callable[[Migration, int], tuple[WaitingBundle, ...]] = lambda *_: (),
) -> Told:
    """A migration with its counts, read now. ``waiting``: `WaitingBundles.find`."""
    counts = counting.counts(migration.cluster, migration.id)
    namespaces = {name: each for name, each in counts.items() if "/" in name}
    total = sum_up(*namespaces.values())
    ends = estimate_end(migration)
    # A migration that stands still is past the end that its pace so far promised.
    known = ends if ends is not None and ends > now_ms else None
    moves = migration.state in (MigrationState.RUNNING, MigrationState.ROLLING_BACK)
    stands = moves and 0 < migration.moved <= now_ms - STILL_MS
    still = migration.moved if stands else 0
    bundles = waiting(migration, now_ms)
    lost = count_lost(migration)
    return Told(migration, total, total.left, namespaces, known, still, bundles, lost)


def report(told: Told, topics: Topics, most: int) -> Report:
    """The report of a migration, with ``most`` topics of each kind."""
    stays, failing, waiting = list[TopicTold](), list[TopicTold](), list[TopicTold]()
    migration = told.migration
    for namespace in told.namespaces:
        for topic, record in topics.of_namespace(migration.cluster, namespace):
            if record.migration != migration.id:
                continue
            row = _row(topic, record)
            if record.stays:
                stays.append(row)
            if record.problem:
                failing.append(row)
            if _waits(migration, record):
                waiting.append(row)
    cut = max(map(len, (stays, failing, waiting))) > most
    # Those first that a person must know of: what began there needs nothing.
    stays.sort(key=lambda each: (not each.lost, each.began, each.topic))
    waiting.sort(key=lambda each: (-_lacking(each), each.topic))
    failing.sort()
    return Report(
        told,
        tuple(stays[:most]),
        tuple(failing[:most]),
        tuple(waiting[:most]),
        cut,
        told.lost,
    )


def _row(topic: str, record: TopicRecord) -> TopicTold:
    return TopicTold(
        topic=topic,
        state=record.state.value,
        backlog=record.backlog,
        subscription=record.subscription,
        subscriptions=record.subscriptions,
        regions=record.regions,
        more=record.more,
        problem=record.problem or _stays_as(record),
        began=record.began,
        lost=record.lost,
    )


def _stays_as(record: TopicRecord) -> str:
    """What there is to know of a topic that stays."""
    if record.lost:
        return LOST
    return GONE.format(record.gone) if record.gone else ""


def _lacking(row: TopicTold) -> int:
    """How many messages are to go before it leaves blue, as far as is known."""
    return max(row.backlog, sum(each.messages for each in row.regions))


def _waits(migration: Migration, record: TopicRecord) -> bool:
    if record.state is TopicState.ACTIVE:
        return migration.state is MigrationState.RUNNING and record.wave <= migration.wave
    return record.state in LEFT
