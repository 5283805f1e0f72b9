"""Rules for answers that are late, lost or a refusal, and for two processes of one name."""

from __future__ import annotations

import re
import time
from typing import Final

from admin.conformance.sight import Broken
from admin.conformance.stage import LEASE_MS, OTHER, Stage
from admin.conformance.steps import (
    DIVISION,
    LOWER,
    SECOND,
    UPPER,
    Rule,
    opened,
    settled,
    stops_in_time,
)
from trimtab.model import NO_EPOCH, Epoch
from trimtab.ownership import Event, State
from trimtab.wire.command import CommandKind

_RENEWAL: Final = re.compile(rb":successor:")
"""Only the lease script, of those that a broker calls, has this key."""

_PROMPT_S: Final = 1.5
"""How soon it stops: sooner than a lease ends that was just renewed, even less a third."""
_LATE_S: Final = 0.7
"""How late an answer is: less than a second, after which clients give up a request."""


def _finishes(stage: Stage) -> None:
    opened(stage)
    stage.give(LOWER)
    stage.ask(LOWER, Event.UNLOAD)
    unload = stage.command(CommandKind.UNLOAD, LOWER)
    # As if its own request had arrived, and the process had stopped before it had the answer.
    stage.reports(LOWER, Event.RELEASE, f"{unload.id}/release")
    stage.send(unload)
    stage.wait(lambda: LOWER not in stage.served(), "it serves what its own request released")
    stage.wait(stage.stream_is_empty, "the command is not acknowledged")


def _keeps_newest(stage: Stage) -> None:
    opened(stage)
    stage.give(LOWER)
    older = stage.record(LOWER)
    stage.ask(LOWER, Event.UNLOAD)
    stage.ask(LOWER, Event.KEEP)
    stage.send(stage.command(CommandKind.OWN, LOWER))
    stage.wait(
        lambda: stage.served().get(LOWER) == stage.epoch(LOWER),
        "own of a kept record does not make that record's epoch its token",
    )
    stage.close()
    stage.wait(stage.asserted, "a closed store gets no assertion")
    assert older is not None
    stage.set_back(LOWER, older, OTHER)
    stage.restore(UPPER, stage.broker)
    stage.reopen()
    stage.wait(lambda: UPPER in stage.served(), "it does not claim what is its own by the record")
    stage.hold(lambda: LOWER in stage.served(), "it believes a record older than it saw")


def _obeys_refusal(stage: Stage) -> None:
    opened(stage)
    own = stage.assign(LOWER)
    taken = stage.before(_asks("serve"), lambda: stage.restore(LOWER, OTHER))
    stage.send(own)
    stage.wait(taken.is_set, "own is not answered with serve")
    stage.hold(lambda: LOWER not in stage.served(), "it serves though its serve was refused")
    stage.wait(stage.stream_is_empty, "the command is not acknowledged")


def _obeys_refused_claim(stage: Stage) -> None:
    stage.open()
    stage.own_without_a_process(LOWER)
    taken = stage.before(_asks("claim"), lambda: stage.restore(LOWER, OTHER))
    stage.start()
    stage.wait(taken.is_set, "it claims nothing at its start")
    stage.hold(lambda: LOWER not in stage.served(), "it serves though its claim was refused")
    stage.wait(stage.reads_its_stream, "after a refused claim it reads no commands")


def _claims_once_more(stage: Stage) -> None:
    stage.open()
    stage.own_without_a_process(LOWER)
    # Newer than what it read, and still its own: an earlier process may have served by it.
    changed = stage.before(_asks("claim"), lambda: stage.restore(LOWER, stage.broker))
    stage.start()
    stage.wait(changed.is_set, "it claims nothing at its start")
    refused = stage.epoch(LOWER)
    stage.wait(lambda: LOWER in stage.served(), "it does not claim once more what is its own")
    if stage.served().get(LOWER, NO_EPOCH) <= refused:
        raise Broken("it serves by a record that refused its claim")


def _seeds_again(stage: Stage) -> None:
    stage.open()
    stage.own_without_a_process(LOWER)
    generation, counter = stage.epoch(LOWER)
    # The renewal that ends the seeding finds that the lease was lost since the claim.
    stage.before(_asks("claim"), lambda: stage.before(_RENEWAL, stage.lose_lease))
    stage.start()
    stage.wait(lambda: stage.epoch(LOWER).counter > counter, "it claims nothing at its start")
    twice = Epoch(generation, counter + 2)
    stage.wait(
        lambda: stage.served().get(LOWER, NO_EPOCH) >= twice,
        "its lease was lost after the claim, and it does not claim and serve again",
    )


def _waits_for_retire(stage: Stage) -> None:
    opened(stage)
    stage.give(SECOND)
    stage.ask(SECOND, Event.SPLIT)
    asked = stage.before(_asks("retire"), stage.line.hold)
    stage.send(stage.command(CommandKind.SPLIT, SECOND, division=DIVISION))
    stage.wait(lambda: asked.is_set() or _is(stage, SECOND, State.OWNED), "split gets no answer")
    if not asked.is_set():
        return  # It declined.
    settled(stage, SECOND, State.DELETED)
    stage.line.cut()
    deadline = time.monotonic() + _PROMPT_S
    while SECOND in stage.served():
        if time.monotonic() > deadline:
            raise Broken("it serves what its unanswered retire may have ended")
    stage.line.mend()
    stage.wait(lambda: len(stage.served()) > 1, "it does not serve the children")


def _counts_from_request(stage: Stage) -> None:
    opened(stage)
    stage.give(LOWER)
    stage.wait(lambda: stage.lease_left_ms() < LEASE_MS * 3 // 4, "the lease gets no older")
    stage.before(_RENEWAL, stage.line.hold)
    stage.wait(lambda: stage.lease_left_ms() > LEASE_MS * 3 // 4, "it is not renewed")
    time.sleep(_LATE_S)
    stage.isolate()
    stage.line.release()
    stops_in_time(stage)


def _follows_master(stage: Stage) -> None:
    opened(stage)
    stage.give(LOWER)
    before = stage.epoch(LOWER)
    told = stage.move_history(0)
    stage.wait(told.is_set, "it does not renew its lease")
    stage.hold(lambda: LOWER in stage.served(), "it stops serving though its lease went on")
    if stage.epoch(LOWER) != before:
        raise Broken("it claims though its lease had no gap")


def _doubts_master(stage: Stage) -> None:
    opened(stage)
    stage.give(LOWER)
    before = stage.epoch(LOWER)
    # More than is left of any lease here when it is renewed.
    told = stage.move_history(LEASE_MS)
    stage.wait(told.is_set, "it does not renew its lease")
    stage.wait(
        lambda: stage.served().get(LOWER, before) > before,
        "it does not claim though the other master may have granted its lease to another",
    )


def _serves_once(stage: Stage) -> None:
    opened(stage)
    stage.give(LOWER)
    with stage.twin() as later:
        deadline = time.monotonic() + 2 * LEASE_MS / 1000
        while LOWER not in later():
            # The first one's page is asked before and after: it serves in between too.
            if time.monotonic() > deadline:
                raise Broken("a later process of its name never serves")
            earlier = LOWER in stage.served()
            if LOWER in later() and earlier and LOWER in stage.served():
                raise Broken("two processes of one name serve the same bundle")
        stage.hold(lambda: not stage.served(), "it serves though a later process has its name")


def _asks(event: str) -> re.Pattern[bytes]:
    """A request for this event, as JSON writes it in any language."""
    return re.compile(rb'"event"\s*:\s*"' + event.encode() + b'"')


def _is(stage: Stage, bundle: str, state: State) -> bool:
    record = stage.record(bundle)
    return record is not None and record.state is state


MISHAPS: Final = {
    "finishes": Rule("It finishes a command that was half done.", _finishes),
    "keeps-newest": Rule("It ignores a record older than one that it saw.", _keeps_newest),
    "obeys-refusal": Rule("serve is refused: it serves nothing.", _obeys_refusal),
    "obeys-refused-claim": Rule(
        "A claim is refused while it seeds: it serves nothing.", _obeys_refused_claim
    ),
    "claims-once-more": Rule(
        "A claim is refused, the bundle is still its own: it claims again before it serves.",
        _claims_once_more,
    ),
    "seeds-again": Rule("Its lease ends while it seeds: it claims once more.", _seeds_again),
    "waits-for-retire": Rule(
        "retire has no answer: it serves none of those bundles until one comes, or it declines.",
        _waits_for_retire,
    ),
    "counts-from-request": Rule(
        "A renewal is answered late: the lease counts from the request.", _counts_from_request
    ),
    "follows-master": Rule(
        "Another master has its lease: it continues to serve, and claims nothing.", _follows_master
    ),
    "doubts-master": Rule(
        "Another master may have lost its lease: it claims before it serves.", _doubts_master
    ),
    "serves-once": Rule("Two processes of its name: only the later one serves.", _serves_once),
}
