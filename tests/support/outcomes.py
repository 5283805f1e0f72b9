"""The outcomes of intents among what a batch gave to the sinks."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from trimtab.cluster.operator import Cluster
from trimtab.wire.intent_outcome import IntentOutcome
from trimtab.wire.rows import Row, Tag


def told(rows: Iterable[Row]) -> list[tuple[str, str, str]]:
    """Id, state and rule of each outcome in a batch."""
    outcomes = [
        msgspec.json.decode(r.payload, type=IntentOutcome) for r in rows if r.tag == Tag.OUTCOME
    ]
    return [(each.id, each.state.value, each.rule) for each in outcomes]


def after(it: Cluster, now_ms: int, *rows: Row) -> list[tuple[str, str, str]]:
    return told(it.take(rows, now_ms)[0])
