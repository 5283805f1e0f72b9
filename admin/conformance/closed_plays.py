"""Plays of a store that is closed and opened again."""

from __future__ import annotations

from admin.conformance.sight import Broken
from admin.conformance.stage import OTHER, Stage
from admin.conformance.steps import (
    LOWER,
    SECOND,
    UPPER,
    opened,
    settled,
)
from trimtab.ownership import Event, State
from trimtab.wire.command import CommandKind


def waits_for_open(stage: Stage) -> None:
    stage.open()
    stage.own_without_a_process(LOWER)
    before = stage.epoch(LOWER)
    stage.close()
    stage.start()
    stage.hold(lambda: not stage.served(), "it serves from a closed store's records", 2.0)
    stage.reopen()
    stage.wait(lambda: LOWER in stage.served(), "it does not serve once the store is open")
    if stage.epoch(LOWER) <= before:
        raise Broken("it did not claim")


def asserts(stage: Stage) -> None:
    opened(stage)
    stage.give(LOWER)
    stage.close()
    stage.wait(stage.asserted, "a closed store gets no assertion")
    if LOWER not in stage.assertion():
        raise Broken("the assertion lacks a bundle that it serves")
    stage.hold(lambda: LOWER in stage.served(), "it stops serving though its lease goes on")


def asserts_again(stage: Stage) -> None:
    asserts(stage)
    stage.reopen()
    stage.give(SECOND)
    stage.close()
    stage.wait(
        lambda: SECOND in stage.assertion(), "closed again, it does not tell what it saw since"
    )


def looks_again(stage: Stage) -> None:
    opened(stage)
    stage.give(LOWER)
    stage.give(SECOND)
    stage.close()
    stage.wait(stage.asserted, "a closed store gets no assertion")
    stage.restore(LOWER, OTHER)
    lost = stage.restore(UPPER, stage.broker)
    stage.reopen()
    stage.wait(
        lambda: LOWER not in stage.served(), "it serves what a newer record gives to another broker"
    )
    stage.wait(lambda: UPPER in stage.served(), "it does not claim what is its own by the record")
    if stage.served()[UPPER] <= lost:
        raise Broken("it serves without a claim what it got while the store was closed")
    stage.hold(lambda: SECOND in stage.served(), "it stops serving what is still its own")


def obeys_nothing_closed(stage: Stage) -> None:
    opened(stage)
    stage.give(LOWER)
    stage.ask(LOWER, Event.UNLOAD)
    unload = stage.command(CommandKind.UNLOAD, LOWER)
    stage.close()
    stage.wait(stage.asserted, "a closed store gets no assertion")
    stage.hold(lambda: LOWER in stage.served(), "it stops serving though its lease goes on", 0.3)
    stage.send(unload)
    stage.hold(lambda: LOWER in stage.served(), "it starts a command while the store is closed")
    stage.reopen()
    settled(stage, LOWER, State.FREE)
