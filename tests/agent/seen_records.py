"""Two bundles and records of them, for a process of its own to see as well as for the test."""

from __future__ import annotations

from trimtab.model import Epoch
from trimtab.ownership import State
from trimtab.wire.ownership import Record

ONE, TWO = "t/ns/0x00000000_0x80000000", "t/ns/0x80000000_0xffffffff"


def record(generation: int, counter: int, owner: str = "a:8080") -> Record:
    return Record(state=State.OWNED, epoch=Epoch(generation, counter), owner=owner)
