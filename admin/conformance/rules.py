"""The rules, each with the play that shows whether a broker keeps it."""

from __future__ import annotations

import time
from typing import Final

from admin.conformance.mishaps import MISHAPS
from admin.conformance.stage import LEASE_MS, OTHER, Broken, Stage
from admin.conformance.steps import (
    DIVISION,
    LOWER,
    SECOND,
    UPPER,
    Rule,
    after,
    drained,
    edited,
    opened,
    settled,
    stops_in_time,
)
from trimtab.model import merge_names
from trimtab.ownership import Event, State
from trimtab.tiling import flaws
from trimtab.wire import keys
from trimtab.wire.command import Command, CommandKind
from trimtab.wire.ownership import Neighbour


def _takes(stage: Stage) -> None:
    opened(stage)
    value = stage.lease()
    if not value[1:].isdecimal():
        raise Broken(f"the lease is {value!r}, not + and the session in digits")


def _renews(stage: Stage) -> None:
    opened(stage)
    stage.hold(
        lambda: stage.lease_left_ms() > 0, "the lease ran out", seconds=2.5 * LEASE_MS / 1000
    )


def _seeds(stage: Stage) -> None:
    stage.open()
    stage.own_without_a_process(LOWER)
    before = stage.epoch(LOWER)
    stage.start()
    stage.wait(lambda: LOWER in stage.served(), "the bundle of the earlier process is not served")
    if stage.epoch(LOWER) <= before or stage.served().get(LOWER) != stage.epoch(LOWER):
        raise Broken("it serves without a claim: the record has its old epoch, or another token")


def _serves(stage: Stage) -> None:
    opened(stage)
    stage.give(LOWER)
    settled(stage, LOWER, State.OWNED)
    if stage.served().get(LOWER) != stage.epoch(LOWER):
        raise Broken("the token is not the record's epoch")


def _acknowledges(stage: Stage) -> None:
    opened(stage)
    stage.give(LOWER)
    drained(stage)


def _unloads(stage: Stage) -> None:
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


def _stops_first(stage: Stage) -> None:
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


def _hands_over(stage: Stage) -> None:
    opened(stage)
    stage.send(_transferring(stage))
    settled(stage, LOWER, State.ASSIGNING)
    sent = stage.commands_of(OTHER)
    wanted = (CommandKind.OWN, LOWER, stage.epoch(LOWER))
    if [(each.kind, each.bundle, each.epoch) for each in sent] != [wanted]:
        raise Broken(f"the destination got {len(sent)} commands, not one own of this epoch")


def _takes_back(stage: Stage) -> None:
    opened(stage)
    transfer = _transferring(stage)
    stage.client.delete(keys.lease_key(stage.cluster, OTHER))
    stage.send(transfer)
    settled(stage, LOWER, State.OWNED)
    stage.wait(lambda: LOWER in stage.served(), "it does not serve what no other broker could take")


def _prepares(stage: Stage) -> None:
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


def _refuses_old(stage: Stage) -> None:
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


def _ignores_copies(stage: Stage) -> None:
    opened(stage)
    own = stage.give(LOWER)
    before = stage.epoch(LOWER)
    stage.send(own)
    stage.send(own)
    stage.hold(lambda: LOWER in stage.served(), "a copy of own made it stop serving")
    drained(stage)
    if stage.epoch(LOWER) != before:
        raise Broken("a copy of own changed the record")


def _skips_unknown_kinds(stage: Stage) -> None:
    opened(stage)
    own = stage.assign(LOWER)
    after(stage, LOWER, edited(own, kind="dance"), own)


def _ignores_members(stage: Stage) -> None:
    opened(stage)
    after(stage, LOWER, edited(stage.assign(LOWER), later={"x": [1, 2]}))


def _drops_poison(stage: Stage) -> None:
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


def _splits(stage: Stage) -> None:
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


def _merges(stage: Stage) -> None:
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


def _stops_without_lease(stage: Stage) -> None:
    opened(stage)
    stage.give(LOWER)
    stage.isolate()
    stops_in_time(stage)


def _agrees_again(stage: Stage) -> None:
    opened(stage)
    stage.give(LOWER)
    before = stage.epoch(LOWER)
    stage.isolate()
    stage.wait(lambda: not stage.lease(), "the lease is still there")
    stage.rejoin()
    stage.wait(lambda: LOWER in stage.served(), "it does not serve again")
    if stage.served().get(LOWER, before) <= before:
        raise Broken("it serves again without a new claim, which may be another's by now")


def _waits_for_open(stage: Stage) -> None:
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


def _asserts(stage: Stage) -> None:
    opened(stage)
    stage.give(LOWER)
    stage.close()
    stage.wait(stage.asserted, "a closed store gets no assertion")
    if LOWER not in stage.assertion():
        raise Broken("the assertion lacks a bundle that it serves")
    stage.hold(lambda: LOWER in stage.served(), "it stops serving though its lease goes on")


def _asserts_again(stage: Stage) -> None:
    _asserts(stage)
    stage.reopen()
    stage.give(SECOND)
    stage.close()
    stage.wait(
        lambda: SECOND in stage.assertion(), "closed again, it does not tell what it saw since"
    )


def _looks_again(stage: Stage) -> None:
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


def _obeys_nothing_closed(stage: Stage) -> None:
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


def _waits_for_older(stage: Stage) -> None:
    stage.open()
    stage.own_without_a_process(LOWER)
    # From before the request, as a broker counts.
    begun = time.monotonic()
    stage.renew_as(2)
    stage.program.start()
    while time.monotonic() < begun + LEASE_MS / 1000:
        if stage.served():
            raise Broken("it serves while an older process of its name may")
    stage.wait(
        lambda: LOWER in stage.served(), "it does not serve once the older one's time is over"
    )


def _gives_way(stage: Stage) -> None:
    opened(stage)
    stage.give(LOWER)
    mine = stage.lease()
    later = int(mine[1:]) + 1_000_000
    left = stage.renew_as(later).ms / 1000
    until = time.monotonic() + left
    stage.wait(lambda: not stage.served(), "it serves though a later process has its name")
    if time.monotonic() > until:
        raise Broken("it served for longer than the rest of its lease")
    stage.wait(lambda: stage.renew_as(later).ms > 0 and stage.lease() != mine, "it keeps the lease")
    stage.hold(lambda: stage.lease() != mine and not stage.served(), "it took its lease again")


def _ends(stage: Stage) -> None:
    opened(stage)
    stage.give(LOWER)
    mine = stage.lease()

    def gives_up() -> None:
        # In this order, as above.
        if stage.lease() != mine and stage.served():
            raise Broken("it gave its lease up, and serves")

    stage.stop(gives_up)
    if stage.lease() not in ("", "0"):
        raise Broken("it ended, and its lease does not say so")


RULES: Final = {
    "takes-lease": Rule("A lease of + and the session, by the script.", _takes),
    "renews-lease": Rule("It is renewed before it ends.", _renews),
    "seeds": Rule("A claim comes before it serves what its name owned.", _seeds),
    "serves": Rule("own: it serves, and confirms.", _serves),
    "acknowledges": Rule("An obeyed command leaves the stream.", _acknowledges),
    "unloads": Rule("unload: it stops, and the bundle is free.", _unloads),
    "stops-first": Rule("transfer, unload: it stops serving before it asks.", _stops_first),
    "hands-over": Rule("transfer: the destination gets own, with the new epoch.", _hands_over),
    "takes-back": Rule("transfer to a dead broker: it declines, and serves.", _takes_back),
    "prepares": Rule("prepare: it serves nothing until own.", _prepares),
    "refuses-old": Rule("A command of an old epoch changes nothing.", _refuses_old),
    "ignores-copies": Rule("A copy of a command changes nothing.", _ignores_copies),
    "skips-unknown-kinds": Rule("A command of an unknown kind is dropped.", _skips_unknown_kinds),
    "ignores-members": Rule("A member that it does not know is ignored.", _ignores_members),
    "drops-poison": Rule("What is no command blocks none behind it.", _drops_poison),
    "splits": Rule("split: the children tile and are served, or it declines.", _splits),
    "merges": Rule("merge: the whole is served, or it declines.", _merges),
    "stops-without-lease": Rule(
        "It stops serving a second before its lease ends.", _stops_without_lease
    ),
    "agrees-again": Rule("After a gap in the lease it claims before it serves.", _agrees_again),
    "waits-for-open": Rule("It claims and serves nothing from a closed store.", _waits_for_open),
    "asserts": Rule("It tells a closed store what it saw, and serves on.", _asserts),
    "asserts-again": Rule("Closed again, the store is told what was seen since.", _asserts_again),
    "looks-again": Rule(
        "After a closed store it drops what is another's, and claims what is its own.", _looks_again
    ),
    "obeys-nothing-closed": Rule(
        "It starts no command while the store is closed.", _obeys_nothing_closed
    ),
    "waits-for-older": Rule("It waits for the rest of an older process's lease.", _waits_for_older),
    "gives-way": Rule(
        "It serves nothing, and takes no lease, once a later process has its name.", _gives_way
    ),
    "ends": Rule("At its end it serves nothing, and then gives its lease up or leaves it.", _ends),
    **MISHAPS,
}
