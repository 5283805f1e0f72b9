"""How many hand-overs it takes to empty brokers one after the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from trimtab.ownership import State
from trimtab.view import is_monitoring
from trimtab.wire.ownership import Record


def count_handovers(
    owned: Mapping[str, int], brokers: Sequence[str], *, restart: bool
) -> Iterator[int]:
    """How many bundles each broker hands over in turn, if each goes to the broker with the fewest.

    Brokers that are drained get none; one that was restarted gets bundles of the next.
    """
    counts = dict(owned)
    for broker in brokers:
        leaving = counts.pop(broker, 0)
        yield leaving
        others = counts if restart else {b: n for b, n in counts.items() if b not in brokers}
        counts |= pour(others, leaving)
        if restart:
            counts[broker] = 0


def pour(counts: Mapping[str, int], more: int) -> dict[str, int]:
    """The counts after ``more`` bundles, each to the broker with the fewest, the first by name."""
    ordered = sorted(counts, key=lambda broker: (counts[broker], broker))
    after, filled = dict(counts), 0
    for number, broker in enumerate(ordered, 1):
        filled += counts[broker]
        level, rest = divmod(filled + more, number)
        if number == len(ordered) or level < counts[ordered[number]]:
            lowest = enumerate(sorted(ordered[:number]))
            return after | {each: level + (place < rest) for place, each in lowest}
    return after


def count_owned(records: Mapping[str, Record]) -> Counter[str]:
    """How many bundles each broker has that can leave it."""
    return Counter(
        record.owner
        for bundle, record in records.items()
        if record.owner and record.state is not State.DELETED and not is_monitoring(bundle)
    )
