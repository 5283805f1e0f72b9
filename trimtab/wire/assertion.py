"""What a broker knows of ownership, for a store that may have forgotten it."""

from __future__ import annotations

import msgspec

from trimtab.wire.ownership import Record


class Assertion(msgspec.Struct, frozen=True, kw_only=True):
    """Said once to each run of the server that is not open; the record with the highest epoch of a
    bundle holds, whoever says it."""

    records: dict[str, Record]
    """Bundle to the newest record of it that the broker saw."""
    v: int = 1
