"""What is held of a cluster after a batch, in pieces that fit Kafka records: trimtab.state."""

from __future__ import annotations

import msgspec


class StateRecord(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One of ``of`` pieces, as MessagePack under the key ``query/batch/cluster``.

    Pieces of one ``subject`` follow each other. Whoever has all of one ``generation`` has what was
    held; a job that was ended in the middle leaves some, and the next tells all of them again.
    """

    query: str
    batch: int
    generation: int
    cluster: str
    number: int
    """From 0 on."""
    of: int
    subject: str
    payload: bytes
    memory_schema: int
    snapshot_schema: int
    v: int = 1


def state_key(query: str, batch: int, cluster: str) -> str:
    """Kafka key of every piece of an export."""
    return f"{query}/{batch}/{cluster}"
