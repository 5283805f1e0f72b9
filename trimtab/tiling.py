"""Check that the records of a namespace cover the hash ring exactly once."""

from __future__ import annotations

from collections.abc import Iterable

from trimtab.model import FULL_RANGE_END, parse_bundle


def flaws(bundles: Iterable[str]) -> list[str]:
    """Each hole and overlap among one namespace's bundles, one sentence each."""
    found = []
    covered, last = 0, ""
    for bundle, (low, high) in sorted(
        ((bundle, parse_bundle(bundle)[1]) for bundle in bundles), key=lambda item: item[1]
    ):
        if low > covered:
            found.append(f"nothing covers 0x{covered:08x}_0x{low:08x} before {bundle}")
        elif low < covered:
            found.append(f"{bundle} overlaps {last}")
        if high > covered:
            covered, last = high, bundle
    if covered != FULL_RANGE_END:
        found.append(f"nothing covers 0x{covered:08x}_0x{FULL_RANGE_END:08x}")
    return found
