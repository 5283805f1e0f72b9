"""Explanations as operator ② tells them."""

from __future__ import annotations

import msgspec

from trimtab.wire.explanation import Explanation, RoundExplanations, StoredExplanations


def explanation(subject: str, number: int = 1, why: str = "because", **more: object) -> Explanation:
    plain = Explanation(
        cluster="c",
        round=number,
        at=60_000 * number,
        subject=subject,
        strategy="trimtab",
        verdict="stayed",
        rule="in-range",
        why=why,
    )
    return msgspec.structs.replace(plain, **more)


def stored(cluster: str, number: int, *told: Explanation, keep: int = 100) -> StoredExplanations:
    """What the sink makes of the row, through its bytes."""
    round_ = RoundExplanations(
        cluster=cluster,
        round=number,
        at=60_000 * number,
        keep=keep,
        subjects={each.subject: each for each in told},
    )
    return msgspec.json.decode(msgspec.json.encode(round_), type=StoredExplanations)
