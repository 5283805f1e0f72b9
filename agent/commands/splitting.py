"""Splits a bundle: the broker's topics determine where, the store makes the children.

find the position; if there is none the bundle stays as it is, and the store is told so
ask the store for the children: from then on the bundle no longer exists
tell the broker, and serve the children
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from agent.commands.obeying import Obeyed, Obeyer
from trimtab.model import parse_bundle, within
from trimtab.ownership import Event
from trimtab.settings import SplitSettings
from trimtab.splitting import DIVIDERS
from trimtab.splitting.request import CannotSplit, SplitFlaw, SplitRequest, children
from trimtab.wire.command import Command, Division
from trimtab.wire.ownership import Record


def split(obeyer: Obeyer, command: Command, record: Record | None) -> Obeyed:
    """Obey a command to split the bundle of ``record``."""
    if record is not None and obeyer.has_done(command, Event.RETIRE, record):
        # The answer was lost: by now the topics may give other children.
        return _retire(obeyer, command, _parts(obeyer, command.bundle))
    if command.division is None:
        return obeyer.report(command, Event.DECLINE)
    try:
        topics = obeyer.broker.topics(command.bundle)
        children = children_of(command.bundle, command.division, topics)
    except CannotSplit as error:
        obeyer.declined(command, str(error))
        obeyer.report(command, Event.DECLINE)
        return Obeyed.DECLINED
    return _retire(obeyer, command, children)


def _retire(obeyer: Obeyer, command: Command, children: tuple[str, ...]) -> Obeyed:
    outcome = obeyer.retire(command, children)
    if outcome.accepted:
        obeyer.holdings.drop(command.bundle)
        # A process that died before it acknowledged the command has loaded the children since.
        if command.bundle in obeyer.broker.bundles():
            obeyer.broker.split(command.bundle, children)
    return obeyer.follow(outcome)


def _parts(obeyer: Obeyer, bundle: str) -> tuple[str, ...]:
    """The parts of a former bundle that this broker serves."""
    records = obeyer.store.records_of(obeyer.cluster, obeyer.broker_id)
    parts = (name for name, record in records.items() if obeyer.serves_by(record))
    return tuple(sorted(part for part in parts if within(bundle, part)))


def children_of(
    bundle: str, division: Division, topics: Mapping[int, Sequence[float]]
) -> tuple[str, ...]:
    """The children of a split bundle, ascending; raises CannotSplit."""
    namespace, span = parse_bundle(bundle)
    request = SplitRequest(
        bundle=span,
        positions=np.array(list(topics), dtype=np.int64),
        traffic=np.array(list(topics.values()), dtype=np.float64).reshape(-1, 4).T,
        wanted=division.positions,
    )
    limits = SplitSettings(
        max_rate=division.max_rate,
        max_throughput=division.max_throughput,
        difference=division.difference,
    )
    divide = DIVIDERS.get(division.algorithm)
    if divide is None:
        raise CannotSplit(span, SplitFlaw.UNKNOWN)
    cuts = divide(request, limits)
    if not cuts:
        raise CannotSplit(span, _find_flaw(request))
    return tuple(f"{namespace}/{part}" for part in children(span, cuts))


def _find_flaw(request: SplitRequest) -> SplitFlaw:
    """Why a divider found no boundary."""
    if len(request.positions) <= 1:
        return SplitFlaw.ONE_TOPIC
    return SplitFlaw.OUTSIDE if request.wanted else SplitFlaw.UNNEEDED
