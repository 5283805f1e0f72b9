"""The brokers and bundles of a cluster, from its rounds and its records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from sinks.redis.bundle_index import BundleIndex
from sinks.redis.ownership_store import OwnershipStore
from trimtab.model import is_bundle, namespace_of
from trimtab.ownership import State
from trimtab.wire.ownership import Record
from trimtab.wire.rounds import RoundRecord

_PAGE: Final = 500
"""Records that a call reads: it blocks the server for less than a millisecond."""


class BrokerRow(NamedTuple):
    """A broker as the newest round saw it; ``usage`` and ``average`` are fractions."""

    broker: str
    state: str
    """serving, lost, draining or held-back."""
    usage: float | None
    average: float | None
    bundles: int
    """How many it owns by the records."""


class BundleRow(NamedTuple):
    """A bundle's record."""

    bundle: str
    state: str
    owner: str
    destination: str
    epoch: str
    since: int
    """When the record was written, by Redis' clock (epoch ms)."""


_AT_REST: Final = (State.OWNED, State.DELETED)


class Wanted(NamedTuple):
    """Which bundles to list: all that match every part that is not empty."""

    broker: str = ""
    namespace: str = ""
    state: State | None = None
    unserved: bool = False
    """Only those that no broker serves now."""

    def takes(self, bundle: str, record: Record) -> bool:
        """Whether a bundle is wanted."""
        return (
            self.broker in ("", record.owner)
            and self.namespace in ("", namespace_of(bundle))
            and self.state in (None, record.state)
            and not (self.unserved and record.state in _AT_REST)
        )


def list_brokers(
    record: RoundRecord, store: OwnershipStore, after: str = "", most: int | None = None
) -> list[BrokerRow]:
    """A page of a round's brokers, the busiest first: at most ``most``, from the one after
    ``after`` on. Raises the store's errors."""
    states = broker_states(record)
    usage = record.usage

    def place(broker: str) -> tuple[float, str]:
        return -usage.get(broker, 0.0), broker

    shown = sorted((b for b in states if not after or place(b) > place(after)), key=place)[:most]
    return describe_brokers(record, store, shown, states)


def describe_brokers(
    record: RoundRecord, store: OwnershipStore, shown: Sequence[str], states: Mapping[str, str]
) -> list[BrokerRow]:
    """The rows of some brokers; ``states`` has those of all. Raises the store's errors."""
    usage, average = record.usage, record.smoothed_usage
    counts = store.owned_counts(record.cluster, shown)
    return [
        BrokerRow(broker, states[broker], usage.get(broker), average.get(broker), counts[broker])
        for broker in shown
    ]


def broker_states(record: RoundRecord) -> dict[str, str]:
    """The brokers of a round: serving, lost, draining or held-back."""
    return {
        **dict.fromkeys(record.usage, "serving"),
        **dict.fromkeys(record.held_back, "held-back"),
        **dict.fromkeys(record.draining, "draining"),
        **dict.fromkeys(record.gone, "lost"),
    }


def list_bundles(
    cluster: str, wanted: Wanted, after: str, store: OwnershipStore, index: BundleIndex
) -> Iterator[BundleRow]:
    """The wanted bundles after ``after``, by name, read in pages as they are asked for."""
    if wanted.broker:
        yield from _rows(wanted, after, store.records_of(cluster, wanted.broker))
        return
    for names in _pages(cluster, wanted.namespace, after, index):
        yield from _rows(wanted, after, store.records_named(cluster, names))


def find_bundle(cluster: str, name: str, store: OwnershipStore) -> BundleRow | None:
    """One bundle's record; None if there is none."""
    return next(_rows(Wanted(), "", store.records_named(cluster, [name])), None)


def read_namespace(
    cluster: str, namespace: str, store: OwnershipStore, index: BundleIndex
) -> dict[str, Record]:
    """The records of a namespace's bundles, in ring order."""
    return {
        bundle: record
        for names in _pages(cluster, namespace, "", index)
        for bundle, record in store.records_named(cluster, names).items()
    }


def _pages(cluster: str, namespace: str, after: str, index: BundleIndex) -> Iterator[list[str]]:
    """The names after ``after``, of one namespace or all."""
    if namespace:
        names = [name for name in index.bundles(cluster, namespace) if name > after]
        yield from (names[start : start + _PAGE] for start in range(0, len(names), _PAGE))
        return
    while names := index.after(cluster, after, _PAGE):
        yield [name for name in names if is_bundle(name)]
        after = names[-1]


def _rows(wanted: Wanted, after: str, found: Mapping[str, Record]) -> Iterator[BundleRow]:
    for bundle, record in sorted(found.items()):
        if bundle > after and wanted.takes(bundle, record):
            yield BundleRow(
                bundle,
                record.state.value,
                record.owner or "",
                record.destination or "",
                f"{record.epoch.generation}.{record.epoch.counter}",
                record.since,
            )
