"""A broker's knowledge of ownership, for a store that may have lost it."""

from __future__ import annotations

import msgspec

from trimtab.wire.ownership import Record


class Assertion(msgspec.Struct, frozen=True, kw_only=True):
    """The records that a broker saw last, sent once to each run of the server that is not open.

    Of a bundle's records the one with the highest epoch wins, whichever broker sent it.
    """

    records: dict[str, Record]
    """Bundle to its newest record that the broker saw."""
    v: int = 1
