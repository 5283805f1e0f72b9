"""Gives every bundle away before a broker ends, without waiting for the job.

for each bundle: stop serving it, give it up, and place it on the better of two other brokers
so a bundle is unserved only while one broker drains it and another loads it
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from agent.commands.obeying import Obeyer
from agent.lookup.claiming import Claims, NoPlace
from trimtab.ownership import State
from trimtab.wire.ownership import Record


def leave(obeyer: Obeyer, claims: Claims, in_time: Callable[[], bool]) -> int:
    """Give away the bundles served here, while ``in_time``; returns how many went.

    A bundle that no broker can take now is free: the next lookup or round places it. Raises
    StoreUnavailable and Closed.
    """
    given = 0
    for bundle in obeyer.holdings.bundles():
        if not in_time():
            break
        obeyer.stop_serving(bundle)
        freed = obeyer.give_up(bundle)
        if freed is not None and freed.state is State.FREE:
            _place(obeyer, claims, bundle, freed)
            given += 1
    return given


def _place(obeyer: Obeyer, claims: Claims, bundle: str, freed: Record) -> None:
    with suppress(NoPlace):
        claims.place(bundle, freed.epoch, {obeyer.broker_id})
