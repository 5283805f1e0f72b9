"""Checks, without a script, whether a master's replicas acknowledged what it wrote lately.

Does what ``are_in_touch`` of ``lua/history.lua`` does, in several steps, on the same note.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from sinks.redis.server.survey import Replica
from trimtab.ownership import REPLICA_WAIT_MS

ASK_AGAIN_MS: Final = 250
"""Equal to the value in ``history.lua``."""

_NOTE: Final = re.compile(rb"([0-9a-f]+) (\d+) (\d+) (\d+)")
"""The history; when replicas were asked, ms; what they have to acknowledge; when they last had."""


class Touch(NamedTuple):
    """What the note says, and the note to write."""

    in_touch: bool
    note: str
    """Empty where the one that stands is to stay."""


def look(  # noqa: PLR0913 - the note, and what a server tells
    noted: bytes | None,
    history: str,
    now_ms: int,
    offset: int,
    replicas: Sequence[Replica],
    least: int,
) -> Touch:
    """Whether ``least`` replicas have acknowledged what was written within REPLICA_WAIT_MS.

    ``offset`` is how far this master's data goes. A process that was stopped may write its note
    late: that is older than the one it replaces, and can only refuse a request more.
    """
    found = _NOTE.fullmatch(noted or b"")
    known = found is not None and found[1].decode() == history
    at_ms, heard_ms, reached = now_ms, now_ms, True
    if found is not None and known:
        at_ms, asked, heard_ms = (int(number) for number in found.groups()[1:])
        reached = sum(each.counts and each.offset >= asked for each in replicas) >= least
        heard_ms = at_ms if reached else heard_ms
    in_touch = 0 <= now_ms - heard_ms <= REPLICA_WAIT_MS
    due = not known or (reached and (not in_touch or now_ms - at_ms >= ASK_AGAIN_MS))
    return Touch(in_touch, f"{history} {now_ms} {offset + 1} {heard_ms}" if due else "")
