"""The state of a cluster after a batch, in pieces that fit Kafka records: trimtab.state."""

from __future__ import annotations

import msgspec


class StateRecord(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One of ``of`` pieces, as MessagePack under the key ``query/batch/cluster``.

    Pieces of one ``subject`` follow each other. All pieces of one ``generation`` together are the
    state; a job that ends in the middle leaves some, and the next job writes all of them again.
    """

    query: str
    batch: int
    generation: int
    cluster: str
    number: int
    """The piece's number, from 0."""
    of: int
    subject: str
    payload: bytes
    memory_schema: int
    snapshot_schema: int
    v: int = 1


def state_key(query: str, batch: int, cluster: str) -> str:
    """The Kafka key of every piece of an export."""
    return f"{query}/{batch}/{cluster}"
