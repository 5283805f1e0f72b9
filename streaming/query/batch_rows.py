"""The rows of a batch, decoded by what they tell."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, TypeVar

import msgspec

from trimtab.kept_plans.kept_plan import KeptPlan
from trimtab.migration.migration import Migration
from trimtab.wire.intent_outcome import IntentOutcome
from trimtab.wire.rounds import RoundRecord
from trimtab.wire.rows import DeadLetter, Intake, Row, Tag

T = TypeVar("T")


class BatchRows(NamedTuple):
    """What the operators tell in one batch."""

    letters: list[tuple[Row, DeadLetter]]
    """Each rejected record with the row that is written as it is."""
    intakes: list[Intake]
    rounds: list[RoundRecord]
    outcomes: list[IntentOutcome]
    plans: list[KeptPlan]
    migrations: list[Migration]
    explanations: list[Row]
    """Left as they are, too: there may be much of it, and brokers wait for commands."""
    state: list[Row]
    """Clusters' exports, which are written as they are."""


def decode_rows(rows: Iterable[Row]) -> BatchRows:
    """The rows by their tags, in their order."""
    by_tag: dict[str, list[Row]] = {tag: [] for tag in Tag}
    for row in rows:
        by_tag[row.tag].append(row)

    def decoded(tag: Tag, kind: type[T]) -> list[T]:
        return [msgspec.json.decode(row.payload, type=kind) for row in by_tag[tag]]

    letters = decoded(Tag.DEAD_LETTER, DeadLetter)
    return BatchRows(
        letters=list(zip(by_tag[Tag.DEAD_LETTER], letters, strict=True)),
        intakes=decoded(Tag.INTAKE, Intake),
        rounds=decoded(Tag.ROUND, RoundRecord),
        outcomes=decoded(Tag.OUTCOME, IntentOutcome),
        plans=decoded(Tag.PLAN, KeptPlan),
        migrations=decoded(Tag.MIGRATION, Migration),
        explanations=by_tag[Tag.WHY],
        state=by_tag[Tag.STATE],
    )
