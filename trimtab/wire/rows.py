"""The rows between operators and to the sinks: tags and payloads."""

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
"""How many bytes of a rejected record its dead letter keeps: enough to recognise the record."""


_LONGEST: Final = 1000
"""The most characters of a text in a dead letter; longer ones are cut."""


class Tag(StrEnum):
    """The kind of payload in a row."""

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
    """② to the sinks: a part of a cluster's state after the batch, as it is stored."""
    WHY = "why"
    """② to the sinks: a round's RoundExplanations as JSON."""


class Row(NamedTuple):
    """The one row type of the stream; ``subject`` is a broker or a record's position."""

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
    """A rejected record on trimtab.dead-letters; ``head`` is its first bytes in base64."""

    reason: str
    detail: str
    topic: str
    partition: int
    offset: int
    key: str
    size: int
    head: str
    field: str = ""
    """The member of a load report whose figure is not believed, if that is the reason."""
    rule: str = ""
    """The rule that an intent broke, if that is the reason (`trimtab.reasons.IntentRule`)."""
    v: int = 1


class Intake(msgspec.Struct, frozen=True, kw_only=True):
    """The load reports of one batch for one cluster, counted."""

    cluster: str
    accepted: int = 0
    duplicate: int = 0
    old: int = 0
    newest_ms: int = 0
    """LogAppendTime of the newest report."""


class PlannedMove(msgspec.Struct, frozen=True, kw_only=True):
    """A move in a round's record; ``epoch`` is that of the ownership record it was decided on."""

    bundle: str
    source: str
    destination: str
    reason: str
    epoch: tuple[int, int]
    why: str = ""
    """For readers: what the plan does, in figures."""


class RefusedMove(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A wish that was not granted, and the rule that decided."""

    bundle: str
    source: str
    rule: str
    destination: str | None = None


class PlannedSplit(msgspec.Struct, frozen=True, kw_only=True):
    """A split in a round's record; ``epoch`` is that of the ownership record it was decided on."""

    bundle: str
    broker: str
    reason: str
    epoch: tuple[int, int]
    why: str = ""
    algorithm: str = ""
    """Instead of the one in the round's ``division``, if it is not empty."""
    positions: tuple[int, ...] = ()


class PlannedMerge(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A merge in a round's record; the epochs are those of the two ownership records."""

    bundle: str
    neighbour: str
    """The bundle just above."""
    broker: str
    reason: str
    epoch: tuple[int, int]
    neighbour_epoch: tuple[int, int]
    why: str = ""


class PlannedRepair(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A repair in a round's record; ``epoch`` is that of the ownership record it was decided on."""

    bundle: str
    event: str
    reason: str
    epoch: tuple[int, int]
    broker: str | None = None
    """The broker that gets or keeps it; it receives a command."""
    why: str = ""


class ShadowSide(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One side of a comparison; ranges are of usage (fractions), None if there is none."""

    strategy: str
    placement: str
    range: float | None
    """At the start of this round, before its moves."""
    moves: int
    """Moves of this round."""
    bounces: int
    """Moves of this round to a broker that the bundle left within the last day."""
    mean_range: float | None
    """Over all compared rounds."""
    total_moves: int
    total_bounces: int


class ShadowRecord(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Compares the active strategy with its shadow, whose moves are only counted."""

    since: int
    """When the comparison began (batch timestamp)."""
    rounds: int
    """How many rounds were compared so far."""
    champion: ShadowSide
    challenger: ShadowSide
    """Its ranges are predicted."""


class BusyTopicRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A bundle that one topic keeps busy (`trimtab.splitting.busy_topics`)."""

    bundle: str
    broker: str
    topics: int
    rate: float
    throughput: float


class RoundRecord(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One round as stored on trimtab.rounds; ``at`` is the batch timestamp (epoch ms)."""

    cluster: str
    round: int
    at: int
    strategy: str
    placement: str
    observe_only: bool
    skipped: str
    """Empty, or the rule that kept the shedder from being asked, or that it proposed nothing.
    Repairs and drains may still be there; splits, merges and moves of children too, if the shedder
    is disabled or frozen."""
    moves: tuple[PlannedMove, ...]
    refusals: tuple[RefusedMove, ...]
    """The first refusals, where there are very many."""
    refused: dict[str, int]
    """Number of all refusals, by rule."""
    obstacles: dict[str, int]
    """How many bundles each rule kept out of the round."""
    summary: dict[str, float]
    usage: dict[str, float]
    """Each broker's usage as the strategies see it (fraction)."""
    problems: tuple[str, ...]
    """Problems for an operator: namespaces that do not tile, intents that were refused, topics that
    need more partitions."""
    move_deadline_ms: int
    settings_version: int
    state_hash: str
    assignment: str = "ahead"
    """When the bundles in ``moves`` get their next owner (`RoundSettings.assignment`)."""
    splits: tuple[PlannedSplit, ...] = ()
    division: Division | None = None
    """How the owners must split the bundles in ``splits``."""
    merges: tuple[PlannedMerge, ...] = ()
    repairs: tuple[PlannedRepair, ...] = ()
    doubt: str = "stable"
    causes: dict[str, str] = {}
    """The level of each cause of doubt that is not stable."""
    gone: tuple[str, ...] = ()
    """Brokers that are lost."""
    draining: tuple[str, ...] = ()
    """Brokers that are being drained."""
    held_back: tuple[str, ...] = ()
    """Brokers that came back and get no bundles yet."""
    unserved: int = 0
    """Bundles that no broker serves, by the records."""
    hints: Hints | None = None
    """Where lookups may place bundles from now on; none while observing only."""
    shadow: ShadowRecord | None = None
    """None without a shadow."""
    settled: tuple[SettledMove, ...] = ()
    """Earlier moves whose result is known; the first ones, where there are very many."""
    closed: dict[str, int] = {}
    """How many earlier moves are no longer waited for, by outcome."""
    bias: float = 0.0
    """Mean of realised less predicted usage (fraction), over the last forecasts of settled moves.
    """
    tripped: dict[str, str] = {}
    """Why the breaker tripped in this round: cause to finding."""
    smoothed_usage: dict[str, float] = {}
    """Each broker's average usage (fraction), from operator ①'s averages of its resources."""
    frozen_until: int = 0
    """No strategy is asked before this batch timestamp; 0 while the breaker is closed."""
    busy_topics: tuple[BusyTopicRecord, ...] = ()
    """Bundles that no split lessens, the busiest first."""
    undo: tuple[PlannedMove, ...] = ()
    """The moves that would undo the plans that tripped the breaker; those that are made are also
    in ``moves``."""
    overrides: dict[str, str | int | float | bool] = {}
    """The settings that intents changed, by dotted name; all others are as the job was started."""
    v: int = 1


def json_row(cluster: str, tag: Tag, value: msgspec.Struct) -> Row:
    """A row from the cluster's operator to the sinks."""
    return Row(cluster, tag, "", msgspec.json.encode(value), 0)


def parse_rows(rows: Iterable[Row], kind: type[T]) -> tuple[list[T], list[Row]]:
    """The rows' values, and a dead letter for each row that does not parse or names another cluster
    than its key."""
    values, letters = [], []
    for row in rows:
        try:
            value = msgspec.json.decode(row.payload, type=kind)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            letters.append(dead_letter(row, "bad-record", str(error)))
            continue
        if row.cluster and value.cluster == row.cluster:
            values.append(value)
        else:
            letters.append(dead_letter(row, "wrong-cluster", f"the record says {value.cluster!r}"))
    return values, letters


def dead_letter(row: Row, reason: str, detail: str, rule: str = "") -> Row:
    """The dead letter for a control or ownership record, whose ``subject`` is its position."""
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
        rule=rule,
    )
    return Row(row.cluster, Tag.DEAD_LETTER, row.subject, msgspec.json.encode(letter), 0)


def head_of(value: bytes) -> str:
    """The first bytes of a rejected record, as a dead letter keeps them."""
    return base64.b64encode(value[:HEAD]).decode()


def brief(text: str) -> str:
    """Cut ``text`` to the length that a dead letter quotes."""
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


class JobSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The start settings of a job that decisions depend on, by dotted name."""

    intake: dict[str, float]
    """Settings of operator ①."""
    defaults: dict[str, str | int | float | bool]
    """Settings of every cluster's rounds, before intents change them."""


class BatchRecord(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """All that a replay of a batch needs: Kafka key ``query/batch`` on trimtab.rounds, in pieces
    if it is large (`trimtab.wire.pieces`)."""

    query: str
    batch: int
    generation: int
    at: int
    """The batch timestamp: the current time for timers and rounds (epoch ms)."""
    offsets: dict[str, dict[str, tuple[int, int]]]
    """Topic to partition to its first offset and the one after its last, where any was read."""
    rounds: tuple[RoundRecord, ...]
    exported: tuple[str, ...] = ()
    """Clusters whose state after this batch is on trimtab.state."""
    settings: JobSettings | None = None
    """In force from this batch on; present in a driver's first batch and with every export."""
    v: int = 1
