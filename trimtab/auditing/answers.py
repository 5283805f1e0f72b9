"""Finds how a command ended: issued with a change of its bundle, the next change answers it."""

from __future__ import annotations

from typing import Final, NamedTuple

from trimtab.auditing.eras import Eras
from trimtab.auditing.finding import format_epoch
from trimtab.auditing.record_history import RecordHistory
from trimtab.auditing.rules import RuleBreach, ViolationKind, server
from trimtab.ownership import Event
from trimtab.wire.command import Command
from trimtab.wire.command import CommandKind as Order
from trimtab.wire.ownership import Record


class Answer(NamedTuple):
    """Whether the result is final, and what is wrong, if anything."""

    final: bool
    flaw: RuleBreach | None = None


_WAITING: Final = Answer(final=False)
_DONE: Final = Answer(final=True)


def answer(
    command: Command, history: RecordHistory | None, eras: Eras, until: int, grace: int
) -> Answer:
    """The result of a command, once everything journalled up to ``until`` has been seen."""
    if history is not None and (
        history.begins_after(command.epoch) or history.may_lack(command.epoch)
    ):
        return _DONE
    issued = None if history is None else history.at(command.epoch)
    if history is not None and issued is not None:
        if _asks_for_nothing(command, issued.record):
            return _DONE
        return _judge(command, history, eras, until, grace)
    if command.issued_at > until:
        return _WAITING
    if eras.lost(command):
        return _DONE
    return Answer(
        True, RuleBreach(ViolationKind.UNFOUNDED, f"no change has the epoch of {_text_of(command)}")
    )


def _asks_for_nothing(command: Command, record: Record) -> bool:
    """Whether ``record``, with which the command was issued, already answers it."""
    # A broker that keeps its bundle is sent OWN, and serves the bundle already.
    kept = command.kind is Order.OWN and server(record) == command.broker
    return kept or command.kind is Order.PREPARE or not command.deadline


def _judge(command: Command, history: RecordHistory, eras: Eras, until: int, grace: int) -> Answer:
    end = history.after(command.epoch)
    if end is None:
        late, last = until, eras.newest
    else:
        late, last = end.record.since, end.record.epoch.generation
        if end.record.epoch.counter > command.epoch.counter + 1:
            if end.event is Event.RESTORE:
                # The journal may never get the change that ended it.
                return _DONE
            if late > until:
                # An earlier change may still arrive.
                return _WAITING
    if eras.overdue(command, grace, late, last):
        return Answer(
            True, RuleBreach(ViolationKind.UNANSWERED, f"{_text_of(command)} did not end in time")
        )
    return _WAITING if end is None else _DONE


def _text_of(command: Command) -> str:
    return f"{command.id} ({command.kind} to {command.broker} at {format_epoch(command.epoch)})"
