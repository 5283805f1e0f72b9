"""The transition script in plain Python, for simulations and for checking the script.

It changes one record at a time, or two that are merged, from the same table. The script's tests
run both over the same histories.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

import msgspec

from trimtab.model import NO_EPOCH, Epoch, HashRange, InvalidName, merge_names, parse_bundle
from trimtab.ownership import (
    BROKER_EVENTS,
    JOB_EVENTS,
    MOST_CHILDREN,
    MOST_FALLS,
    SOON_MS,
    STREAK_ENDS,
    TRANSITIONS,
    Effect,
    Event,
    Given,
    OwnerRule,
    State,
)
from trimtab.wire.ownership import Candidate, Record, Refused, Transition

FREE = Record(state=State.FREE, epoch=NO_EPOCH)
"""The record that stands for a bundle without one."""

GAINS = frozenset({OwnerRule.TAKE, OwnerRule.DESTINATION})


span_of: Callable[[str], tuple[str, HashRange]] = lru_cache(1 << 16)(parse_bundle)
"""`parse_bundle` with a cache, because the same names come again and again."""


@dataclass(frozen=True, slots=True)
class Standing:
    """The state against which a transition is judged."""

    records: Mapping[str, Record]
    generation: int
    now_ms: int
    alive: Callable[[str], bool]
    placed: Mapping[str, int]
    speaks_for: Callable[[Transition], bool] = lambda _: True
    """Whether the process that asks holds its broker's lease."""
    vouched: bool = True
    """Whether the caller's clock agrees with the server's."""
    can_serve: Callable[[str], bool] = lambda _: True
    """Whether a broker that holds a lease has a process to serve."""
    tallies: Mapping[str, int] = field(default_factory=dict)
    """Tally to what was placed in it since the hints."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """``written``: the new records, by bundle; ``refused``: why the request was refused."""

    written: Mapping[str, Record]
    event: Event
    refused: Refused | None = None


def judge(asked: Transition, here: Standing) -> Judgement:
    """Judge a request that was not made before."""
    old = here.records.get(asked.bundle, FREE)
    new = _done(asked, old, here)
    if isinstance(new, Refused):
        return Judgement({}, asked.event, new)
    if new.falls >= MOST_FALLS and TRANSITIONS[old.state][asked.event].owner in GAINS:
        ill = msgspec.structs.replace(new, state=State.QUARANTINED, owner=None, destination=None)
        return Judgement({asked.bundle: ill}, Event.QUARANTINE, Refused.QUARANTINED)
    if not _fits(asked, old, new, here):
        return Judgement({}, asked.event, Refused.NOT_TILING)
    if asked.neighbour is not None:
        return _both(asked, old, new, here)
    children = {child: _child(asked, child, old, here) for child in asked.children}
    return Judgement({asked.bundle: new, **children}, asked.event)


def _both(asked: Transition, old: Record, new: Record, here: Standing) -> Judgement:
    """Apply the same request to the neighbour above: to both or to neither."""
    assert asked.neighbour is not None
    bundle, expect = asked.neighbour
    beside = here.records.get(bundle, FREE)
    same = msgspec.structs.replace(asked, bundle=bundle, expect=expect, commands=())
    upper = _done(same, beside, here)
    if isinstance(upper, Refused):
        return Judgement({}, asked.event, upper)
    if beside.owner != old.owner:
        return Judgement({}, asked.event, Refused.NOT_OWNER)
    if asked.event is Event.RETIRE and beside.by != old.by:
        return Judgement({}, asked.event, Refused.ILLEGAL)
    above = max(old, beside, key=lambda record: record.epoch.counter)
    children = {child: _child(asked, child, above, here) for child in asked.children}
    return Judgement({asked.bundle: new, bundle: upper, **children}, asked.event)


def _done(asked: Transition, old: Record, here: Standing) -> Record | Refused:
    """The changed record, or why it stays as it is."""
    refused = _inadmissible(asked, old, here)
    if refused is not None:
        return refused
    effect = TRANSITIONS[old.state][asked.event]
    new = Record(
        state=effect.state,
        epoch=Epoch(here.generation, old.epoch.counter + 1),
        owner=_owner(asked, old, effect, here),
        destination=asked.broker if effect.owner is OwnerRule.KEEP_AIM else None,
        since=here.now_ms,
        by=asked.id,
        falls=_falls(asked, old, effect, here),
    )
    return _unfit(asked, old, new, effect, here) or new


def _inadmissible(asked: Transition, old: Record, here: Standing) -> Refused | None:
    if asked.event not in (JOB_EVENTS if asked.actor is None else BROKER_EVENTS):
        return Refused.NOT_PERMITTED
    if asked.bundle not in here.records and not _is_bundle(asked.bundle):
        return Refused.NOT_TILING
    if asked.session is not None and not here.speaks_for(asked):
        return Refused.NO_LEASE
    if asked.expect != old.epoch or asked.expect.generation > here.generation:
        return Refused.STALE_EPOCH
    effect = TRANSITIONS[old.state].get(asked.event)
    if effect is None:
        return Refused.ILLEGAL
    guarded = effect.given is not Given.NOTHING and old.owner is not None
    waits = asked.actor is not None or effect.given is Given.OWNER_GONE
    if guarded and waits and here.alive(old.owner or ""):
        return Refused.OWNER_LIVES
    return Refused.CLOCK_IN_DOUBT if guarded and waits and not here.vouched else None


def _is_bundle(name: str) -> bool:
    try:
        parse_bundle(name)
    except InvalidName:
        return False
    return True


def _owner(asked: Transition, old: Record, effect: Effect, here: Standing) -> str | None:
    match effect.owner:
        case OwnerRule.TAKE if asked.candidates:
            return _best(asked, here)
        case OwnerRule.TAKE:
            return asked.broker or asked.actor
        case OwnerRule.DESTINATION:
            return old.destination
        case OwnerRule.NOBODY:
            return None
    return old.owner


def _best(asked: Transition, here: Standing) -> str | None:
    living = _living(asked, here)
    best = min(
        (each for each in living if not _is_overtaken(asked, each.broker, here)),
        key=lambda candidate: candidate.load + asked.each * here.placed.get(candidate.broker, 0),
        default=None,
    )
    return None if best is None else best.broker


def _living(asked: Transition, here: Standing) -> list[Candidate]:
    return [
        candidate
        for candidate in asked.candidates
        if here.alive(candidate.broker) and here.can_serve(candidate.broker)
    ]


def _is_overtaken(asked: Transition, broker: str, here: Standing) -> bool:
    """Whether a bundle of the same namespace or group was placed there since the caller counted."""
    seen = asked.tallies.get(broker, {})
    return any(0 <= value != here.tallies.get(tally, 0) for tally, value in seen.items())


def _falls(asked: Transition, old: Record, effect: Effect, here: Standing) -> int:
    if effect.given is not Given.NOTHING and old.owner is not None and not here.alive(old.owner):
        return old.falls + 1 if here.now_ms - old.since < SOON_MS else 0
    return 0 if asked.event in STREAK_ENDS else old.falls


def _unfit(
    asked: Transition, old: Record, new: Record, effect: Effect, here: Standing
) -> Refused | None:
    if effect.owner in GAINS and new.owner is None:
        if not asked.candidates:
            return Refused.NO_BROKER
        return Refused.OVERTAKEN if _living(asked, here) else Refused.NO_LEASE
    if effect.owner is OwnerRule.KEEP_AIM and new.destination == new.owner:
        return Refused.SAME_BROKER
    refused = None if asked.actor is None else _not_the_actors(asked, old, new)
    if refused is not None:
        return refused
    newcomer = new.owner if effect.owner in GAINS else new.destination
    served = newcomer is None or (here.alive(newcomer) and here.can_serve(newcomer))
    if not asked.candidates and not served:
        return Refused.NO_LEASE
    if not _stands(asked.bundle, here) and _overlaps(asked.bundle, here):
        return Refused.NOT_TILING
    return None


def _not_the_actors(asked: Transition, old: Record, new: Record) -> Refused | None:
    owns = new.owner if asked.event is Event.CLAIM else old.owner
    if asked.event is not Event.ASSIGN and owns != asked.actor:
        return Refused.NOT_OWNER
    others = any(command.broker != new.owner for command in asked.commands)
    return Refused.NOT_PERMITTED if others and not asked.candidates else None


def _stands(bundle: str, here: Standing) -> bool:
    return bundle in here.records and here.records[bundle].state is not State.DELETED


def _overlaps(bundle: str, here: Standing) -> bool:
    namespace, (low, high) = span_of(bundle)
    for other in here.records:
        if not other.startswith(namespace):
            continue
        of, (begins, ends) = span_of(other)
        if of == namespace and _stands(other, here) and begins < high and low < ends:
            return True
    return False


def _fits(asked: Transition, old: Record, new: Record, here: Standing) -> bool:
    """Whether a merge names a neighbour, and an end of bundles names children."""
    ends = new.state is State.DELETED
    merges = State.MERGING in ((old.state, new.state) if ends else (new.state,))
    if merges != (asked.neighbour is not None) or ends != bool(asked.children):
        return False
    whole = asked.bundle
    if asked.neighbour is not None:
        try:
            whole = merge_names(asked.bundle, asked.neighbour.bundle)
        except InvalidName:
            return False
    few = len(asked.children) <= (1 if merges else MOST_CHILDREN)
    return few and (not ends or _tile(whole, asked, here))


def _tile(whole: str, asked: Transition, here: Standing) -> bool:
    namespace, (at, end) = parse_bundle(whole)
    for child in asked.children:
        try:
            of, (low, high) = parse_bundle(child)
        except ValueError:
            return False
        if of != namespace or low != at or _stands(child, here):
            return False
        at = high
    return at == end


def _child(asked: Transition, child: str, parent: Record, here: Standing) -> Record:
    known = here.records.get(child, FREE)
    counter = max(known.epoch.counter, parent.epoch.counter) + 1
    return Record(
        state=State.OWNED,
        epoch=Epoch(here.generation, counter),
        owner=parent.owner,
        since=here.now_ms,
        by=asked.id,
    )
