"""The time spans in which each job generation wrote to a cluster, by the journal's own clock."""

from __future__ import annotations

import math

from trimtab.ownership import Event
from trimtab.wire.command import Command
from trimtab.wire.ownership import Change


class Eras:
    """One cluster's eras. An era ends with the last journalled change of its generation."""

    def __init__(self) -> None:
        self._spans: dict[int, tuple[int, int]] = {}
        self._newest = 0

    def open(self, generation: int) -> None:
        """Note that the store is open to this generation."""
        self._newest = max(self._newest, generation)

    def see(self, change: Change) -> None:
        """Take in a journal entry."""
        since, generation = change.record.since, change.record.epoch.generation
        self.open(generation)
        if change.event is Event.RESTORE:
            # It was journalled in a later era than it was made in.
            return
        begun, ended = self._spans.get(generation, (since, since))
        self._spans[generation] = min(begun, since), max(ended, since)

    def lost(self, command: Command) -> bool:
        """Whether the store may have lost, unjournalled, the change that issued the command.

        The journal is relayed in order: only changes after its last one of an era can be lost.
        """
        _, ended = self._spans.get(command.generation, (0, 0))
        return command.issued_at >= ended and self._newest > command.generation

    def overdue(self, command: Command, grace: int, until: int, last: int) -> bool:
        """Whether a command has used up its time and ``grace`` in one of the eras up to generation
        ``last``, before ``until``.

        It has its full time again in each era: between two eras no answer may be possible.
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
        """The newest known generation."""
        return self._newest
