"""What several plays do and wait for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

import msgspec

from admin.conformance.sight import Broken
from admin.conformance.stage import MARGIN_MS, Stage
from trimtab.ownership import State
from trimtab.wire.command import Command, Division

LOWER: Final = "public/first/0x00000000_0x80000000"
UPPER: Final = "public/first/0x80000000_0xffffffff"
SECOND: Final = "public/second/0x00000000_0xffffffff"

DIVISION: Final = Division(
    algorithm="range_equally_divide", max_rate=1e6, max_throughput=1e9, difference=0.1
)


class Rule(NamedTuple):
    """A rule, and a play of it; the play raises Broken."""

    text: str
    play: Callable[[Stage], None]


def opened(stage: Stage) -> None:
    stage.open()
    stage.start()
    # From here on what it gets comes by commands: it has agreed with the store.
    stage.wait(stage.reads_its_stream, "it does not read its stream in the group agent")


def settled(stage: Stage, bundle: str, state: State) -> None:
    def is_so() -> bool:
        record = stage.record(bundle)
        return record is not None and record.state is state

    stage.wait(is_so, f"{bundle} does not become {state}")


def drained(stage: Stage) -> None:
    stage.wait(stage.stream_is_empty, "the commands are not acknowledged")


def after(stage: Stage, bundle: str, *entries: Command | bytes) -> None:
    """Put entries into the stream; the last one gives the bundle."""
    for entry in entries:
        stage.send(entry)
    stage.wait(lambda: bundle in stage.served(), "the command behind it is not obeyed")
    drained(stage)


def edited(command: Command, **members: object) -> bytes:
    return msgspec.json.encode({**msgspec.to_builtins(command), **members})


def stops_in_time(stage: Stage) -> None:
    """Watch that it stops before a lease ends that is not renewed."""

    def ends_in_time() -> bool:
        # In this order: what is served after the lease was seen so short is served too long.
        left_ms = stage.lease_left_ms()
        if left_ms < MARGIN_MS and stage.served():
            raise Broken(f"it serves though its lease in Redis has {left_ms} ms left")
        return left_ms == 0

    stage.wait(ends_in_time, "the lease is still there")
