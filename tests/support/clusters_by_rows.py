"""Operator ② on dicts, fed with the rows its engine would give it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import count

import msgspec

from tests.support.reports import snapshot
from trimtab.cluster.operator import Cluster
from trimtab.model import Epoch
from trimtab.ownership import Event, State
from trimtab.shedding import DEFAULTS
from trimtab.state.memory import Memory
from trimtab.wire.columns import pack
from trimtab.wire.intent import Intent, IntentKind
from trimtab.wire.ownership import Change, Record
from trimtab.wire.rounds import RoundRecord
from trimtab.wire.rows import Row, Tag

AVG = {
    "round.shedding": "avg",
    "round.placement": "avg",
    "avg.high_hits": 1,
    "unload.min_rate": 1.0,
    "unload.max_share": 0.5,
}
"""AvgShedder that acts on the first high gap, however small the rates."""


def cluster(settings: Mapping[str, object] | None = None) -> Cluster:
    return Cluster("c", {}, {}, Memory(), DEFAULTS.changed(AVG | dict(settings or {})))


def snapshot_row(
    broker: str, rates: Mapping[str, float], cpu: float = 50.0, at_ms: int = 1000
) -> Row:
    payload = pack(snapshot(broker, rates, cpu))
    return Row("c", Tag.SNAPSHOT, broker, payload, at_ms, accepted=1)


def change_row(
    bundle: str,
    owner: str | None,
    counter: int = 1,
    state: State = State.OWNED,
    event: Event = Event.CLAIM,
) -> Row:
    return record_row(bundle, Record(state=state, epoch=Epoch(1, counter), owner=owner), event)


def record_row(bundle: str, record: Record, event: Event = Event.TRANSFER) -> Row:
    change = Change(cluster="c", bundle=bundle, event=event, record=record)
    return Row("c", Tag.CHANGE, "trimtab.ownership/0/1", msgspec.json.encode(change), 0)


_numbers = count(1)


def intent_row(intent: Intent, at_ms: int = 0) -> Row:
    return Row("c", Tag.INTENT, "trimtab.control/0/1", msgspec.json.encode(intent), at_ms)


def said(kind: IntentKind, at_ms: int = 0, **members: object) -> Row:
    """An intent of a kind: ``said(Kind.BROKER_LOST, broker="a:1")``; each has an id of its own."""
    value = {"id": f"{kind.value}-{next(_numbers)}", "kind": kind.value, "cluster": "c"} | members
    return Row("c", Tag.INTENT, "trimtab.control/0/1", msgspec.json.encode(value), at_ms)


def rounds_in(rows: Iterable[Row]) -> list[RoundRecord]:
    """The rounds among what a batch gave to the sinks."""
    return [msgspec.json.decode(r.payload, type=RoundRecord) for r in rows if r.tag == Tag.ROUND]


def held(cluster: Cluster, now_ms: int) -> RoundRecord:
    return msgspec.json.decode(cluster.hold_round(now_ms).payload, type=RoundRecord)


def skewed(bundles: Iterable[str]) -> list[Row]:
    """Broker a, hot, owns all bundles at 100 messages/s each; broker b is idle."""
    bundles = list(bundles)
    return [
        snapshot_row("a:1", dict.fromkeys(bundles, 100.0), cpu=90.0),
        snapshot_row("b:1", {}, cpu=10.0),
        *(change_row(bundle, "a:1") for bundle in bundles),
    ]
