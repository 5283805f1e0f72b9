"""How large an intent may be: rounds carry what it says, and one must not keep them busy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

from trimtab.model import LONGEST_NAME
from trimtab.ownership import MOST_CHILDREN
from trimtab.wire.intent import Intent

_TEXTS: Final = ("broker", "name", "group", "bundle", "algorithm", "plan", "migration", "scope")

MOST: Final[Mapping[str, int]] = MappingProxyType(
    {"settings": 500, "names": 500, "brokers": 10_000, "positions": MOST_CHILDREN - 1}
)
"""Entries of a member. Fewer: not all settings, or not a whole fleet; more: each unknown name is
compared with all known ones, and 1 MB of them would take longer than the watchdog waits."""


def excesses(intent: Intent) -> Iterator[str]:
    """What of an intent is too large."""
    for member in _TEXTS:
        if len(getattr(intent, member)) > LONGEST_NAME:
            yield f"{member}: has more than {LONGEST_NAME} characters"
    for member, most in MOST.items():
        if len(getattr(intent, member)) > most:
            yield f"{member}: has more than {most} entries"
    if any(len(broker) > LONGEST_NAME for broker in intent.brokers):
        yield f"brokers: one has more than {LONGEST_NAME} characters"
