"""From when to when each generation of the job wrote to a cluster, by the journal's own clock."""

from __future__ import annotations

import math

from trimtab.ownership import Event
from trimtab.wire.command import Command
from trimtab.wire.ownership import Change


class Eras:
    """Of one cluster. An era ends with the last change of its generation that is journalled."""

    def __init__(self) -> None:
        self._spans: dict[int, tuple[int, int]] = {}
        self._newest = 0

    def open(self, generation: int) -> None:
        """The store is open to this generation."""
        self._newest = max(self._newest, generation)

    def see(self, change: Change) -> None:
        """Take in an entry of the journal."""
        since, generation = change.record.since, change.record.epoch.generation
        self.open(generation)
        if change.event is Event.RESTORE:
            # Journalled in a later era than it was made in.
            return
        begun, ended = self._spans.get(generation, (since, since))
        self._spans[generation] = min(begun, since), max(ended, since)

    def lost(self, command: Command) -> bool:
        """Whether the change that issued the command may have gone with a lost store, unjournalled.

        The journal is carried in order: only what came after all that it has of an era can be lost.
        """
        _, ended = self._spans.get(command.generation, (0, 0))
        return command.issued_at >= ended and self._newest > command.generation

    def overdue(self, command: Command, grace: int, until: int, last: int) -> bool:
        """Whether a command had its time, and ``grace``, within the eras up to generation ``last``
        and before ``until``.

        It has its whole time anew in each era: between two of them nobody may be able to answer.
        """
        allowed = command.deadline - command.issued_at + grace
        return any(
            min(ended if generation < self._newest else math.inf, until)
            > max(begun, command.issued_at) + allowed
            for generation, (begun, ended) in self._spans.items()
            if command.generation <= generation <= last
        )

    @property
    def newest(self) -> int:
        """The newest generation that is known."""
        return self._newest
