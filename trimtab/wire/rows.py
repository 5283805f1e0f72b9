"""What travels between the operators and to the sinks: tagged rows and their payloads."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from enum import StrEnum
from typing import Final, NamedTuple, Protocol, TypeVar

import msgspec

from trimtab.wire.command import Division
from trimtab.wire.hints import Hints
from trimtab.wire.settled import SettledMove


class _OfCluster(Protocol):
    @property
    def cluster(self) -> str: ...


T = TypeVar("T", bound=_OfCluster)

HEAD: Final = 256
"""Bytes of a rejected record that its dead letter keeps."""


_LONGEST: Final = 1000
"""Characters of a text in a dead letter."""


class Tag(StrEnum):
    """What a row carries."""

    SNAPSHOT = "snapshot"
    """① to ②: a packed Snapshot."""
    INTENT = "intent"
    """trimtab.control to ②."""
    CHANGE = "change"
    """trimtab.ownership to ②."""
    DEAD_LETTER = "dead-letter"
    """① or ② to the sinks: a DeadLetter as JSON."""
    INTAKE = "intake"
    """② to the sinks: an Intake as JSON."""
    ROUND = "round"
    """② to the sinks: a RoundRecord as JSON."""
    STATE = "state"
    """② to the sinks: a part of what is held of a cluster after the batch, as it is stored."""
    WHY = "why"
    """② to the sinks: a round's RoundExplanations as JSON."""


class Row(NamedTuple):
    """The one row type of the stream; ``subject`` is a broker or where a record stood."""

    cluster: str
    tag: str
    subject: str
    payload: bytes
    appended_ms: int
    accepted: int = 0
    duplicate: int = 0
    old: int = 0


ROW_SCHEMA: Final = (
    "cluster string, tag string, subject string, payload binary, appended_ms bigint, "
    "accepted int, duplicate int, old int"
)


class DeadLetter(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A rejected record on trimtab.dead-letters; ``head`` is base64 of its first bytes."""

    reason: str
    detail: str
    topic: str
    partition: int
    offset: int
    key: str
    size: int
    head: str
    field: str = ""
    """The member of a load report whose figure is not believed, if that is why."""
    v: int = 1


class Intake(msgspec.Struct, frozen=True, kw_only=True):
    """What one batch brought for one cluster."""

    cluster: str
    accepted: int = 0
    duplicate: int = 0
    old: int = 0
    newest_ms: int = 0
    """LogAppendTime of the newest report."""


class PlannedMove(msgspec.Struct, frozen=True, kw_only=True):
    """A move as the round recorded it; ``epoch`` is the record's it was decided on."""

    bundle: str
    source: str
    destination: str
    reason: str
    epoch: tuple[int, int]
    why: str = ""
    """For people: what the plan does, in figures."""


class RefusedMove(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A wish that was not granted and the rule that bound."""

    bundle: str
    source: str
    rule: str
    destination: str | None = None


class PlannedSplit(msgspec.Struct, frozen=True, kw_only=True):
    """A division as the round recorded it; ``epoch`` is the record's it was decided on."""

    bundle: str
    broker: str
    reason: str
    epoch: tuple[int, int]
    why: str = ""


class PlannedMerge(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A merge as the round recorded it; the epochs are those of the two records."""

    bundle: str
    neighbour: str
    """The one just above."""
    broker: str
    reason: str
    epoch: tuple[int, int]
    neighbour_epoch: tuple[int, int]
    why: str = ""


class PlannedRepair(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A repair as the round recorded it; ``epoch`` is the record's it was decided on."""

    bundle: str
    event: str
    reason: str
    epoch: tuple[int, int]
    broker: str | None = None
    """Who is to have it, or to keep it; it is told so."""
    why: str = ""


class ShadowSide(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One side of a comparison; ranges are of usage (fractions), None where there is none."""

    strategy: str
    placement: str
    range: float | None
    """That this round found, before its moves."""
    moves: int
    """Of this round."""
    bounces: int
    """Of these, those to a broker that the bundle left within a day."""
    mean_range: float | None
    """Of all rounds compared."""
    total_moves: int
    total_bounces: int


class ShadowRecord(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """How the strategy in charge does beside its challenger, whose moves only count."""

    since: int
    """When the comparison began (batch timestamp)."""
    rounds: int
    """Compared so far."""
    champion: ShadowSide
    challenger: ShadowSide
    """Its ranges are predicted."""


class RoundRecord(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One round as trimtab.rounds keeps it; ``at`` is the batch timestamp (epoch ms)."""

    cluster: str
    round: int
    at: int
    strategy: str
    placement: str
    observe_only: bool
    skipped: str
    """Empty, or the rule for which no strategy was asked: repairs and drains there may be yet."""
    moves: tuple[PlannedMove, ...]
    refusals: tuple[RefusedMove, ...]
    """The first of them, where there are very many."""
    refused: dict[str, int]
    """All of them, by rule."""
    obstacles: dict[str, int]
    """How many bundles each rule kept out of the round."""
    summary: dict[str, float]
    usage: dict[str, float]
    """Each broker's usage as the strategies see it (fraction)."""
    problems: tuple[str, ...]
    """What an operator must look at: namespaces that do not tile, intents that were refused."""
    move_deadline_ms: int
    settings_version: int
    state_hash: str
    splits: tuple[PlannedSplit, ...] = ()
    division: Division | None = None
    """How the owners of ``splits`` shall divide."""
    merges: tuple[PlannedMerge, ...] = ()
    repairs: tuple[PlannedRepair, ...] = ()
    doubt: str = "stable"
    causes: dict[str, str] = {}
    """Level of each cause of doubt that is not stable."""
    gone: tuple[str, ...] = ()
    """Brokers that are lost."""
    draining: tuple[str, ...] = ()
    """Brokers that are to be emptied."""
    held_back: tuple[str, ...] = ()
    """Brokers that came back and get no bundles yet."""
    unserved: int = 0
    """Bundles that nobody serves, by the records."""
    hints: Hints | None = None
    """Where lookups may place bundles from now on; none while observing only."""
    shadow: ShadowRecord | None = None
    """None without a challenger."""
    settled: tuple[SettledMove, ...] = ()
    """Earlier moves of which it is known what came of them; the first, where there are very many.
    """
    closed: dict[str, int] = {}
    """How many earlier moves are waited for no longer, by how they ended."""
    bias: float = 0.0
    """Mean of realised less predicted usage (fraction), over the last sides of moves."""
    tripped: dict[str, str] = {}
    """Why the breaker tripped in this round: cause to what was found."""
    frozen_until: int = 0
    """No strategy is asked before (batch timestamp); 0 while the breaker is closed."""
    undo: tuple[PlannedMove, ...] = ()
    """What would take back the plans that tripped the breaker; what of it is done is in ``moves``.
    """
    v: int = 1


def json_row(cluster: str, tag: Tag, value: msgspec.Struct) -> Row:
    """A row from the cluster's operator to the sinks."""
    return Row(cluster, tag, "", msgspec.json.encode(value), 0)


def parse_rows(rows: Iterable[Row], kind: type[T], letters: list[Row]) -> list[T]:
    """The rows' values; one that does not parse, or says another cluster than its key, becomes a
    dead letter in ``letters`` instead."""
    values = []
    for row in rows:
        try:
            value = msgspec.json.decode(row.payload, type=kind)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            letters.append(_reject(row, "bad-record", str(error)))
            continue
        if row.cluster and value.cluster == row.cluster:
            values.append(value)
        else:
            letters.append(_reject(row, "wrong-cluster", f"the record says {value.cluster!r}"))
    return values


def _reject(row: Row, reason: str, detail: str) -> Row:
    """The dead letter of a control or ownership record, whose ``subject`` is its position."""
    topic, partition, offset = row.subject.rsplit("/", 2)
    letter = DeadLetter(
        reason=reason,
        detail=brief(detail),
        topic=topic,
        partition=int(partition),
        offset=int(offset),
        key=brief(row.cluster),
        size=len(row.payload),
        head=head_of(row.payload),
    )
    return Row(row.cluster, Tag.DEAD_LETTER, row.subject, msgspec.json.encode(letter), 0)


def head_of(value: bytes) -> str:
    """The first bytes of a rejected record, as a dead letter keeps them."""
    return base64.b64encode(value[:HEAD]).decode()


def brief(text: str) -> str:
    """As much of what a rejected record says as its dead letter quotes."""
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


class JobSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What a job was started with and decisions depend on, by dotted name."""

    intake: dict[str, float]
    """Of operator ①."""
    defaults: dict[str, str | int | float | bool]
    """Of every cluster's rounds, before intents change them."""


class BatchRecord(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What is needed to run a batch again: Kafka key ``query/batch`` on trimtab.rounds, in pieces
    where it is large (`trimtab.wire.pieces`)."""

    query: str
    batch: int
    generation: int
    at: int
    """The batch timestamp: what timers and rounds saw as now (epoch ms)."""
    offsets: dict[str, dict[str, tuple[int, int]]]
    """Topic to partition to its first offset and the one after its last, where any was read."""
    rounds: tuple[RoundRecord, ...]
    exported: tuple[str, ...] = ()
    """Clusters of which trimtab.state has what was held after this batch."""
    settings: JobSettings | None = None
    """In force from this batch on; said in a driver's first and with every export."""
    v: int = 1
