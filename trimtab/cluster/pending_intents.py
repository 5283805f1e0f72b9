"""Follows the intents that were accepted until each is done, refused or expired.

an intent     is done as soon as
  unload      its bundles have another owner, or none
  split       its bundle is deleted
  readmit     its bundle is not quarantined
  drain       its broker owns no bundle
  namespace   a broker serves each of its bundles
A round may refuse what it was asked for; an intent is refused if that leaves nothing of it. What
takes longer than two rounds and a move expires. A drain never does, as it stays in force. The
bundles of a new namespace are still given to brokers after that: it must not stay with holes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Final

from trimtab.cluster.outcomes import BY_BUNDLE, Told, end_pending, outcome_of, without
from trimtab.ownership import Event, State
from trimtab.plan import Plan
from trimtab.reasons import Rule
from trimtab.state.memory import Memory
from trimtab.state.pending import Pending
from trimtab.view import is_monitoring
from trimtab.wire.intent import IntentKind
from trimtab.wire.intent_outcome import IntentState
from trimtab.wire.ownership import Change, Record

_TOLD: Final = 20
"""Bundles of an intent whose refusals are told: more say nothing new."""


def note_changes(
    cluster: str,
    memory: Memory,
    records: Mapping[str, Record],
    declined: Collection[str],
    now_ms: int,
) -> Told:
    """Follow bundles' new ``records``; owners of ``declined`` ones found nothing to split."""

    def after(pending: Pending) -> Pending:
        for bundle in pending.awaited.keys() & records.keys():
            if pending.kind == IntentKind.SPLIT and bundle in declined:
                why = "its owner found nothing to split; its log says why"
                pending = _refused(pending, bundle, Rule.UNDIVIDABLE, why)
            elif _has_changed(pending, bundle, records[bundle]):
                pending = replace(
                    pending,
                    awaited=without(pending.awaited, bundle),
                    changed=pending.changed + 1,
                )
        return pending

    told = _followed(cluster, memory, after, now_ms)
    # What others changed as an intent asked is not done once more by the next round.
    return told._replace(memory=_without_ended(told.memory, memory))


def note_round(
    cluster: str, memory: Memory, plan: Plan, records: Mapping[str, Record], now_ms: int
) -> Told:
    """Follow a round; ``records`` are all of the cluster's, none while it only observes."""
    if not memory.pending:
        return Told(memory)
    # The first one of a bundle is that of the operator's wish.
    refusals = {refusal.bundle: refusal.rule for refusal in reversed(plan.refusals)}
    state = memory.round
    waiting = state.asked.keys() | state.asked_moves.keys() | state.asked_merges.keys()

    def after(pending: Pending) -> Pending:
        for bundle, each in pending.awaited.items():
            if each.decided or bundle in waiting:
                continue
            if bundle in refusals:
                pending = _refused(pending, bundle, refusals[bundle])
            else:
                decided = replace(each, decided=True)
                pending = replace(pending, awaited=pending.awaited | {bundle: decided})
        return pending

    followed = _followed(cluster, memory, after, now_ms)
    emptied = _end_drains(cluster, followed.memory, records, now_ms)
    expired = _expire(cluster, emptied.memory, plan, now_ms)
    return Told(expired.memory, followed.outcomes + emptied.outcomes + expired.outcomes)


def is_declined(change: Change, before: Record | None) -> bool:
    """Whether the owner keeps a bundle whole that it was to split."""
    splitting = before is not None and before.state is State.SPLITTING
    return splitting and change.event is Event.DECLINE


def _has_changed(pending: Pending, bundle: str, record: Record) -> bool:
    """Whether the bundle now is as the intent asked."""
    before = pending.awaited[bundle]
    match pending.kind:
        case IntentKind.UNLOAD:
            left = record.state in (State.FREE, State.DELETED)
            moved = record.state is State.OWNED and record.owner != before.source
            return left or moved
        case IntentKind.SPLIT | IntentKind.MERGE:
            return record.state is State.DELETED
        case IntentKind.NAMESPACE:
            return record.state is State.OWNED
        case _:
            return record.state is not State.QUARANTINED


def _refused(pending: Pending, bundle: str, rule: str, why: str = "") -> Pending:
    problem = f"{bundle}: {why or rule}"
    return replace(
        pending,
        awaited=without(pending.awaited, bundle),
        rule=pending.rule or rule,
        problems=(*pending.problems, problem)[:_TOLD],
    )


def _followed(
    cluster: str, memory: Memory, after: Callable[[Pending], Pending], now_ms: int
) -> Told:
    """Apply ``after`` to each pending intent, and end those that wait for nothing more."""
    found = {
        name: after(pending) if pending.kind in BY_BUNDLE else pending
        for name, pending in memory.pending.items()
    }
    ended = {
        name: outcome_of(
            cluster, name, each, IntentState.DONE if each.changed else IntentState.REFUSED, now_ms
        )
        for name, each in found.items()
        if not each.awaited and each.kind in BY_BUNDLE
    }
    return end_pending(replace(memory, pending=found), ended)


def _end_drains(cluster: str, memory: Memory, records: Mapping[str, Record], now_ms: int) -> Told:
    drains = {name: each for name, each in memory.pending.items() if each.kind == IntentKind.DRAIN}
    if not drains or not records:
        return Told(memory)
    owners = {
        record.owner
        for bundle, record in records.items()
        if record.state is not State.DELETED and not is_monitoring(bundle)
    }
    ended = {
        name: outcome_of(cluster, name, each, IntentState.DONE, now_ms)
        for name, each in drains.items()
        if each.subject not in owners
    }
    return end_pending(memory, ended)


def _expire(cluster: str, memory: Memory, plan: Plan, now_ms: int) -> Told:
    """End the intents that took too long; rounds no longer try them."""
    late = {n: each for n, each in memory.pending.items() if 0 < each.until_ms <= now_ms}
    if not late:
        return Told(memory)
    rule = "" if plan.skipped is None else f": {plan.skipped.value}"
    ended = {}
    for name, each in late.items():
        decided = all(one.decided for one in each.awaited.values())
        text = f"no round could decide it in time{rule}"
        why = "it was begun, and not finished in time" if decided else text
        problems = (*each.problems, why)
        ended[name] = outcome_of(
            cluster, name, replace(each, problems=problems), IntentState.EXPIRED, now_ms
        )
    told = end_pending(memory, ended)
    return told._replace(memory=_without_ended(told.memory, memory))


def _without_ended(memory: Memory, before: Memory) -> Memory:
    """The memory without what rounds are asked by intents that waited before and no longer do."""

    def ended(kind: IntentKind) -> set[str]:
        return _awaited(before, kind) - _awaited(memory, kind)

    state = memory.round
    state = replace(
        state,
        asked=without(state.asked, *ended(IntentKind.SPLIT)),
        asked_moves=without(state.asked_moves, *ended(IntentKind.UNLOAD)),
        asked_merges=without(state.asked_merges, *ended(IntentKind.MERGE)),
    )
    return replace(memory, round=state)


def _awaited(memory: Memory, kind: IntentKind) -> set[str]:
    """The bundles that intents of a kind wait for."""
    found = (each.awaited for each in memory.pending.values() if each.kind == kind)
    return {bundle for awaited in found for bundle in awaited}
