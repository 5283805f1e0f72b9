"""Plays of the lease: taking it, renewing it, and what its end means."""

from __future__ import annotations

import time

from admin.conformance.sight import Broken
from admin.conformance.stage import LEASE_MS, Stage
from admin.conformance.steps import (
    LOWER,
    opened,
    stops_in_time,
)


def takes(stage: Stage) -> None:
    opened(stage)
    value = stage.lease()
    if not value[1:].isdecimal():
        raise Broken(f"the lease is {value!r}, not + and the session in digits")


def renews(stage: Stage) -> None:
    opened(stage)
    stage.hold(
        lambda: stage.lease_left_ms() > 0, "the lease ran out", seconds=2.5 * LEASE_MS / 1000
    )


def stops_without_lease(stage: Stage) -> None:
    opened(stage)
    stage.give(LOWER)
    stage.isolate()
    stops_in_time(stage)


def agrees_again(stage: Stage) -> None:
    opened(stage)
    stage.give(LOWER)
    before = stage.epoch(LOWER)
    stage.isolate()
    stage.wait(lambda: not stage.lease(), "the lease is still there")
    stage.rejoin()
    stage.wait(lambda: LOWER in stage.served(), "it does not serve again")
    if stage.served().get(LOWER, before) <= before:
        raise Broken("it serves again without a new claim, which may be another's by now")


def waits_for_older(stage: Stage) -> None:
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


def gives_way(stage: Stage) -> None:
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


def ends(stage: Stage) -> None:
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
