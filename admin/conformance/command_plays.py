"""Plays of commands: each kind, obeyed."""

from __future__ import annotations

import time

from admin.conformance.sight import Broken
from admin.conformance.stage import OTHER, Stage
from admin.conformance.steps import (
    DIVISION,
    LOWER,
    SECOND,
    UPPER,
    drained,
    opened,
    settled,
)
from trimtab.model import merge_names
from trimtab.ownership import Event, State
from trimtab.tiling import flaws
from trimtab.wire import keys
from trimtab.wire.command import Command, CommandKind
from trimtab.wire.ownership import Neighbour


def seeds(stage: Stage) -> None:
    stage.open()
    stage.own_without_a_process(LOWER)
    before = stage.epoch(LOWER)
    stage.start()
    stage.wait(lambda: LOWER in stage.served(), "the bundle of the earlier process is not served")
    if stage.epoch(LOWER) <= before or stage.served().get(LOWER) != stage.epoch(LOWER):
        raise Broken("it serves without a claim: the record has its old epoch, or another token")


def serves(stage: Stage) -> None:
    opened(stage)
    stage.give(LOWER)
    settled(stage, LOWER, State.OWNED)
    if stage.served().get(LOWER) != stage.epoch(LOWER):
        raise Broken("the token is not the record's epoch")


def acknowledges(stage: Stage) -> None:
    opened(stage)
    stage.give(LOWER)
    drained(stage)


def unloads(stage: Stage) -> None:
    opened(stage)
    stage.give(LOWER)
    stage.ask(LOWER, Event.UNLOAD)
    stage.send(stage.command(CommandKind.UNLOAD, LOWER))
    settled(stage, LOWER, State.FREE)
    if LOWER in stage.served():
        raise Broken("it serves a bundle that it released")


def _transferring(stage: Stage) -> Command:
    stage.give(LOWER)
    stage.other_lives()
    stage.ask(LOWER, Event.TRANSFER, broker=OTHER)
    return stage.command(CommandKind.TRANSFER, LOWER, source=stage.broker, destination=OTHER)


def stops_first(stage: Stage) -> None:
    opened(stage)
    _stops_before_it_asks(stage, _transferring(stage), State.ASSIGNING)
    stage.give(SECOND)
    stage.ask(SECOND, Event.UNLOAD)
    _stops_before_it_asks(stage, stage.command(CommandKind.UNLOAD, SECOND), State.FREE)


def _stops_before_it_asks(stage: Stage, command: Command, then: State) -> None:
    stage.isolate()
    stage.send(command)
    deadline = time.monotonic() + 1.5
    while command.bundle in stage.served():
        if time.monotonic() > deadline:
            raise Broken(f"it still serves while it asks the store, after {command.kind.value}")
    if not stage.lease():
        raise Broken("it stopped only as its lease ran out")
    stage.rejoin()
    settled(stage, command.bundle, then)


def hands_over(stage: Stage) -> None:
    opened(stage)
    stage.send(_transferring(stage))
    settled(stage, LOWER, State.ASSIGNING)
    sent = stage.commands_of(OTHER)
    wanted = (CommandKind.OWN, LOWER, stage.epoch(LOWER))
    if [(each.kind, each.bundle, each.epoch) for each in sent] != [wanted]:
        raise Broken(f"the destination got {len(sent)} commands, not one own of this epoch")


def takes_back(stage: Stage) -> None:
    opened(stage)
    transfer = _transferring(stage)
    stage.client.delete(keys.lease_key(stage.cluster, OTHER))
    stage.send(transfer)
    settled(stage, LOWER, State.OWNED)
    stage.wait(lambda: LOWER in stage.served(), "it does not serve what no other broker could take")


def prepares(stage: Stage) -> None:
    opened(stage)
    stage.other_lives()
    stage.restore(LOWER, OTHER)
    stage.ask(LOWER, Event.TRANSFER, broker=stage.broker)
    stage.send(stage.command(CommandKind.PREPARE, LOWER, source=OTHER))
    drained(stage)
    stage.hold(lambda: LOWER not in stage.served(), "it serves what another broker still owns")
    stage.other_reports(LOWER, Event.HAND_OVER)
    stage.send(stage.command(CommandKind.OWN, LOWER, source=OTHER))
    settled(stage, LOWER, State.OWNED)
    stage.wait(lambda: LOWER in stage.served(), "it does not serve what it was given")


def splits(stage: Stage) -> None:
    opened(stage)
    stage.give(SECOND)
    stage.ask(SECOND, Event.SPLIT)
    stage.send(stage.command(CommandKind.SPLIT, SECOND, division=DIVISION))
    drained(stage)
    if (record := stage.record(SECOND)) is not None and record.state is State.OWNED:
        stage.wait(lambda: SECOND in stage.served(), "it declined, and does not serve the bundle")
        return
    settled(stage, SECOND, State.DELETED)
    stage.wait(lambda: not flaws(stage.served()), "the children that it serves do not tile")


def merges(stage: Stage) -> None:
    opened(stage)
    stage.give(LOWER)
    stage.give(UPPER)
    stage.ask(LOWER, Event.MERGE, neighbour=Neighbour(UPPER, stage.epoch(UPPER)))
    stage.send(stage.command(CommandKind.MERGE, LOWER, neighbour=UPPER))
    drained(stage)
    records = [stage.record(part) for part in (LOWER, UPPER)]
    if all(record is not None and record.state is State.OWNED for record in records):
        stage.wait(lambda: {LOWER, UPPER} <= stage.served().keys(), "it declined, and serves less")
        return
    whole = merge_names(LOWER, UPPER)
    settled(stage, whole, State.OWNED)
    stage.wait(lambda: set(stage.served()) == {whole}, "it does not serve the merged bundle alone")
