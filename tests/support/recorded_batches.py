"""Records of batches and rounds in which little happened."""

from __future__ import annotations

from typing import Final

from trimtab.wire.rounds import BatchRecord, RoundRecord

START: Final = 1_800_000_000_000


def held(cluster: str) -> RoundRecord:
    return RoundRecord(
        cluster=cluster,
        round=1,
        at=START,
        strategy="avg",
        placement="avg",
        observe_only=False,
        skipped="",
        moves=(),
        refusals=(),
        refused={},
        obstacles={},
        summary={},
        usage={},
        problems=(),
        move_deadline_ms=1000,
        settings_version=0,
        state_hash="",
    )


def batch(
    number: int, rounds: str = "", exported: str = "", query: str = "q", generation: int = 1
) -> BatchRecord:
    """A batch a second; clusters have names of a letter."""
    return BatchRecord(
        query=query,
        batch=number,
        generation=generation,
        at=START + 1000 * number,
        offsets={},
        rounds=tuple(map(held, rounds)),
        exported=tuple(exported),
    )
