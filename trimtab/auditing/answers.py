"""How a command ended: issued with a change of its bundle, it is answered by the next one."""

from __future__ import annotations

from typing import Final, NamedTuple

from trimtab.auditing.eras import Eras
from trimtab.auditing.finding import told_epoch
from trimtab.auditing.rules import RuleBreach, ViolationKind, server
from trimtab.auditing.story import RecordHistory
from trimtab.ownership import Event
from trimtab.wire.command import Command
from trimtab.wire.command import CommandKind as Order
from trimtab.wire.ownership import Record


class Answer(NamedTuple):
    """Whether nothing more is to come, and what is wrong then."""

    final: bool
    flaw: RuleBreach | None = None


_WAITING: Final = Answer(final=False)
_DONE: Final = Answer(final=True)


def answer(
    command: Command, story: RecordHistory | None, eras: Eras, until: int, grace: int
) -> Answer:
    """What became of a command, once everything journalled up to ``until`` has been seen."""
    if story is not None and (story.begins_after(command.epoch) or story.may_lack(command.epoch)):
        return _DONE
    issued = None if story is None else story.at(command.epoch)
    if story is not None and issued is not None:
        if _asks_for_nothing(command, issued.record):
            return _DONE
        return _ended(command, story, eras, until, grace)
    if command.issued_at > until:
        return _WAITING
    if eras.lost(command):
        return _DONE
    return Answer(
        True, RuleBreach(ViolationKind.UNFOUNDED, f"no change has the epoch of {_told(command)}")
    )


def _asks_for_nothing(command: Command, record: Record) -> bool:
    """Whether no change need follow ``record``, with which the command was issued."""
    # Who is to keep a bundle is told so, and serves it already.
    kept = command.kind is Order.OWN and server(record) == command.broker
    return kept or command.kind is Order.PREPARE or not command.deadline


def _ended(command: Command, story: RecordHistory, eras: Eras, until: int, grace: int) -> Answer:
    end = story.after(command.epoch)
    if end is None:
        late, last = until, eras.newest
    else:
        late, last = end.record.since, end.record.epoch.generation
        if end.record.epoch.counter > command.epoch.counter + 1:
            if end.event is Event.RESTORE:
                # The journal may lack the one that ended it, for good.
                return _DONE
            if late > until:
                # An earlier one may still come.
                return _WAITING
    if eras.overdue(command, grace, late, last):
        return Answer(
            True, RuleBreach(ViolationKind.UNANSWERED, f"{_told(command)} did not end in time")
        )
    return _WAITING if end is None else _DONE


def _told(command: Command) -> str:
    return f"{command.id} ({command.kind} to {command.broker} at {told_epoch(command.epoch)})"
