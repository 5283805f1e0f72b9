"""Plays of entries in the stream that must change nothing."""

from __future__ import annotations

from admin.conformance.sight import Broken
from admin.conformance.stage import OTHER, Stage
from admin.conformance.steps import (
    LOWER,
    after,
    drained,
    edited,
    opened,
    settled,
)
from trimtab.ownership import Event, State
from trimtab.wire import keys
from trimtab.wire.command import CommandKind


def refuses_old(stage: Stage) -> None:
    opened(stage)
    own = stage.give(LOWER)
    # Released and given again since.
    stage.ask(LOWER, Event.UNLOAD)
    late = stage.command(CommandKind.UNLOAD, LOWER)
    stage.ask(LOWER, Event.KEEP)
    stage.send(stage.command(CommandKind.OWN, LOWER))
    stage.wait(
        lambda: stage.served().get(LOWER) == stage.epoch(LOWER),
        "own of a kept record does not make that record's epoch its token",
    )
    assert own.epoch < late.epoch
    stage.isolate()
    stage.send(late)
    stage.hold(lambda: LOWER in stage.served(), "it obeyed a command of an old epoch")
    stage.rejoin()
    drained(stage)
    settled(stage, LOWER, State.OWNED)


def ignores_copies(stage: Stage) -> None:
    opened(stage)
    own = stage.give(LOWER)
    before = stage.epoch(LOWER)
    stage.send(own)
    stage.send(own)
    stage.hold(lambda: LOWER in stage.served(), "a copy of own made it stop serving")
    drained(stage)
    if stage.epoch(LOWER) != before:
        raise Broken("a copy of own changed the record")


def skips_unknown_kinds(stage: Stage) -> None:
    opened(stage)
    own = stage.assign(LOWER)
    after(stage, LOWER, edited(own, kind="dance"), own)


def ignores_members(stage: Stage) -> None:
    opened(stage)
    after(stage, LOWER, edited(stage.assign(LOWER), later={"x": [1, 2]}))


def drops_poison(stage: Stage) -> None:
    opened(stage)
    own = stage.assign(LOWER)
    stage.client.xadd(keys.command_stream(stage.cluster, stage.broker), {"other": "1"})
    after(
        stage,
        LOWER,
        b"\xff{",
        b"[]",
        b"{}",
        edited(own, broker=OTHER),
        edited(own, bundle="no-bundle"),
        edited(own, epoch=[1, -1]),
        own,
    )
