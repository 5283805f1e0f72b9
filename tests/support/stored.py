"""What is stored of brokers, in one form: each snapshot with its broker's latest figures."""

from __future__ import annotations

from sources.arrivals import Stored
from trimtab.intake.latest import join
from trimtab.model import parse_subject


def joined(stored: Stored) -> dict[tuple[str, str], bytes]:
    """By cluster and broker."""
    return {
        parse_subject(name): join(packed, stored.latest.get(name))
        for name, packed in stored.snapshots.items()
    }
