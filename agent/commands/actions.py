"""Obeys the job's commands, one bundle at a time.

A command is valid while the bundle's record has the epoch at which the command was issued. Its
action and its report are harmless to repeat.
"""

from __future__ import annotations

from agent.broker import CannotLoad
from agent.commands.merging import merge
from agent.commands.obeying import Obeyed, Obeyer
from agent.commands.splitting import split
from trimtab.ownership import Event
from trimtab.wire.command import Command, CommandKind
from trimtab.wire.ownership import Record, Refused


def obey(obeyer: Obeyer, command: Command) -> Obeyed:
    """Act and report; raises StoreUnavailable or Closed, after which it may be repeated."""
    of_bundle = command.kind is not CommandKind.TOPIC_MIGRATED
    record = obeyer.store.record(obeyer.cluster, command.bundle) if of_bundle else None
    obeyed = Obeyed.STALE
    if not of_bundle or obeyer.holds(command, record):
        obeyed = _act(obeyer, command, record)
    elif record is not None:
        # What made it stale may be an answer to this very command, which was lost.
        obeyer.take_back(command.bundle, record)
    obeyer.counts[command.kind, obeyed] += 1
    return obeyed


def _act(obeyer: Obeyer, command: Command, record: Record | None) -> Obeyed:
    """``record`` is read once: if it changes meanwhile, the store refuses what follows from it."""
    match command.kind:
        case CommandKind.UNLOAD:
            return _unload(obeyer, command)
        case CommandKind.TRANSFER:
            return _transfer(obeyer, command)
        case CommandKind.PREPARE:
            return _prepare(obeyer, command)
        case CommandKind.OWN:
            return _own(obeyer, command, record)
        case CommandKind.SPLIT:
            return split(obeyer, command, record)
        case CommandKind.MERGE:
            return merge(obeyer, command)
        case CommandKind.TOPIC_MIGRATED:
            obeyer.look_at_topics()
            return Obeyed.DONE


def _unload(obeyer: Obeyer, command: Command) -> Obeyed:
    obeyer.stop_serving(command.bundle)
    return obeyer.report(command, Event.RELEASE)


def _transfer(obeyer: Obeyer, command: Command) -> Obeyed:
    obeyer.stop_serving(command.bundle)
    if command.destination is None:
        return obeyer.report(command, Event.RELEASE)
    own = command.handed_on(obeyer.broker_id, command.destination)
    outcome = obeyer.apply(command, Event.HAND_OVER, (own,))
    if outcome.reason is Refused.NO_LEASE:
        # The destination died: better served here than not at all.
        obeyer.report(command, Event.DECLINE)
        return Obeyed.DECLINED
    return obeyer.follow(outcome)


def _prepare(obeyer: Obeyer, command: Command) -> Obeyed:
    obeyer.broker.prepare(command.bundle)
    return Obeyed.DONE


def _own(obeyer: Obeyer, command: Command, record: Record | None) -> Obeyed:
    if record is not None and obeyer.serves_by(record):
        # It was about to leave, and stays after all.
        if obeyer.holdings.epoch(command.bundle) is not None:
            obeyer.settle(command.bundle, record)
            return Obeyed.DONE
        # Only an open store gives it back: a closed one's record may be long out of date.
        outcome = obeyer.claim(command.bundle, record)
        obeyer.follow_claim(outcome)
        return Obeyed.DONE if outcome.accepted else Obeyed.REFUSED
    try:
        obeyer.load(command.bundle)
    except CannotLoad:
        obeyer.report(command, Event.DECLINE)
        return Obeyed.DECLINED
    return obeyer.report(command, Event.SERVE)
