"""Rounds of a demo, as Kafka would tell them."""

from __future__ import annotations

from admin.demo.story import Story
from trimtab.model import Epoch
from trimtab.wire.planned import PlannedMove
from trimtab.wire.rounds import RoundRecord


def record(number: int, moves: tuple[str, ...] = (), brokers: int = 2) -> RoundRecord:
    """A round that moved a bundle for each reason."""
    return RoundRecord(
        cluster="demo",
        round=number,
        at=0,
        strategy="avg",
        placement="avg",
        observe_only=False,
        skipped="" if moves else "balanced",
        moves=tuple(
            PlannedMove(
                bundle=f"demo/ns-00/0x0000000{i}_0x0000000{i + 1}",
                source="hot:8080",
                destination="cold:8080",
                reason=reason,
                epoch=Epoch(1, 1),
            )
            for i, reason in enumerate(moves)
        ),
        refusals=(),
        refused={},
        obstacles={},
        summary={"brokers": brokers, "usage_range": 0.0},
        usage={},
        problems=(),
        move_deadline_ms=30_000,
        settings_version=0,
        state_hash="",
    )


def story(*points: float) -> Story:
    """A round of each range, five seconds apart, from the tenth second on."""
    told = Story(brokers=2, threshold=15.0)
    for number, range_ in enumerate(points, start=1):
        told = told.told(record(number), 5.0 + 5 * number, range_)
    return told
