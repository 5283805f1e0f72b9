"""A broker's knowledge of ownership, for a store that may have lost it."""

from __future__ import annotations

import msgspec

from trimtab.wire.ownership import Record


class Assertion(msgspec.Struct, frozen=True, kw_only=True):
    """The newest records that a broker saw, sent once to each run of the server that is not open.

    If brokers send different records of a bundle, the one with the highest epoch wins.
    """

    records: dict[str, Record]
    """By bundle: the newest record of it that the broker saw."""
    v: int = 1
