"""What ownership was, put together again after the store has forgotten some of it.

for each bundle: the record with the highest epoch holds, whoever has it
  the store itself, the journal topic, or a broker that saw it
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from trimtab.wire.ownership import Record

Records = Mapping[str, Record]
"""Bundle to record."""


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """What the store lacks."""

    records: dict[str, Record]
    """Newer than what the store has."""
    unjournalled: frozenset[str]
    """Those of them that only brokers knew."""


def rebuilt(stored: Records, journalled: Records, asserted: Iterable[Records]) -> Rebuilt:
    """What to restore. Equal inputs in any order give equal results: an epoch is given out once."""
    lacking: dict[str, Record] = {}
    _take(lacking, stored, journalled)
    for said in asserted:
        _take(lacking, stored, said)
    unjournalled = (b for b, record in lacking.items() if not _reaches(journalled, b, record))
    return Rebuilt(dict(sorted(lacking.items())), frozenset(unjournalled))


def _take(lacking: dict[str, Record], stored: Records, known: Records) -> None:
    for bundle, record in known.items():
        if not _reaches(stored, bundle, record) and not _reaches(lacking, bundle, record):
            lacking[bundle] = record


def _reaches(records: Records, bundle: str, record: Record) -> bool:
    known = records.get(bundle)
    return known is not None and known.epoch >= record.epoch
