"""Which records of a topic a batch reads, and which of its tasks reads which."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

_FEW: Final = 32
"""Fewer records are read by one task: to start another takes longer than to decode them."""


class Span(NamedTuple):
    """Records of a partition that follow each other; ``end`` is the offset after the last."""

    partition: int
    start: int
    end: int


def advance(starts: Mapping[int, int], ends: Mapping[int, int], most: int) -> dict[int, int]:
    """Where a batch of about ``most`` records ends, by partition: each gets its share of what is
    left in it up to ``ends``, and at least one record.

    A partition that ``starts`` does not name is new, and begins at 0.
    """
    left = {number: end - starts.get(number, 0) for number, end in ends.items()}
    total = sum(count for count in left.values() if count > 0)
    if total <= most:
        return dict(ends)
    return {
        number: starts.get(number, 0) + max(1, count * most // total) if count > 0 else ends[number]
        for number, count in left.items()
    }


def spans_between(starts: Mapping[int, int], ends: Mapping[int, int]) -> list[Span]:
    """What is to be read from ``starts`` to ``ends``, by partition."""
    found = (Span(number, starts.get(number, 0), end) for number, end in sorted(ends.items()))
    return [span for span in found if span.start < span.end]


def share_out(spans: Iterable[Span], tasks: int) -> list[list[Span]]:
    """The same records for each task, as many for one as for the next; none without spans."""
    spans = list(spans)
    total = sum(span.end - span.start for span in spans)
    each = total if total < _FEW else -(-total // tasks)
    shares, room = list[list[Span]](), 0
    for number, start, end in spans:
        while start < end:
            if not room:
                shares.append([])
                room = each
            taken = min(room, end - start)
            shares[-1].append(Span(number, start, start + taken))
            start, room = start + taken, room - taken
    return shares
