"""The rows between operators and to the sinks: tags and payloads."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import Final, NamedTuple, Protocol, TypeVar

import msgspec

from trimtab.kept_plans.kept_plan import KeptPlan
from trimtab.migration.migration import Migration


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
    LATEST = "latest"
    """① to ②: a packed Latest, of a snapshot whose bundles are as they were."""
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
    OUTCOME = "outcome"
    """② to the sinks: an intent's Outcome as JSON."""
    PLAN = "plan"
    """② to the sinks: a KeptPlan as JSON, whenever it has changed."""
    MIGRATION = "migration"
    """② to the sinks: a Migration as JSON, whenever it has changed, and with each round."""
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
    """The rule that an intent broke, if that is the reason (`trimtab.intent_rules.IntentRule`)."""
    v: int = 1


class Intake(msgspec.Struct, frozen=True, kw_only=True):
    """The load reports of one batch for one cluster, counted."""

    cluster: str
    accepted: int = 0
    duplicate: int = 0
    old: int = 0
    newest_ms: int = 0
    """LogAppendTime of the newest report."""


def json_row(cluster: str, tag: Tag, value: msgspec.Struct | KeptPlan | Migration) -> Row:
    """A row from the cluster's operator to the sinks."""
    return Row(cluster, tag, "", msgspec.json.encode(value), 0)


def parse_rows(rows: Iterable[Row], decode: Callable[[bytes], T]) -> tuple[list[T], list[Row]]:
    """The rows' values, and a dead letter for each row that does not parse or names another cluster
    than its key."""
    values, letters = [], []
    for row in rows:
        try:
            value = decode(row.payload)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            letters.append(dead_letter(row, "bad-record", str(error)))
            continue
        if row.cluster and value.cluster == row.cluster:
            values.append(value)
        else:
            letters.append(dead_letter(row, "wrong-cluster", _mismatch(row.cluster, value.cluster)))
    return values, letters


def _mismatch(key: str, said: str) -> str:
    where = f"the Kafka key is of cluster {key!r}" if key else "the Kafka key names no cluster"
    return f"{where}, the record says {said!r}; write it with its own cluster as the key"


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
