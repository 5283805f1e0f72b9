"""What the owner of a topic's bundle does next for it.

running, wave begun   active       create its resources on green; then
                                     hold        if other regions lack messages of it
                                     terminate   otherwise
not rolled back       replicating  terminate once they lack none
                      terminated   redirect each subscription without backlog; then
                      draining       finish      if none is left
                                     drain       otherwise
rolling, rolled back  replicating  reopen
                      terminated,  take it back from green; then
                      draining,      reopen      if green had taken no write of it
                      migrated       reopen      without asking, if green is given up
                                     lose        if blue has nothing of it
                                     stay        otherwise
Each step is harmless to repeat: one that was cut short is done again by the bundle's owner.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from trimtab.migration.life import BACK, ONWARD, MigrationState
from trimtab.migration.migration import Migration
from trimtab.migration.topic_life import TopicState


class Step(StrEnum):
    """The work that is due for a topic."""

    REST = "rest"
    """Nothing, until the migration or another topic has come further."""
    BEGIN = "begin"
    """Create its resources on green, then hold or terminate it."""
    CATCH_UP = "catch-up"
    """Terminate it if other regions lack nothing any more."""
    DRAIN = "drain"
    """Redirect consumers that are done; finish it after the last."""
    RELEASE = "release"
    """Let its producers in again."""
    TAKE_BACK = "take-back"
    """Ask green for it; then reopen it, or let it stay."""


_ON_BLUE: Final = frozenset({TopicState.UNKNOWN, TopicState.ACTIVE})


def next_step(migration: Migration, wave: int, state: TopicState, *, stays: bool) -> Step:
    """The step that is due for a topic of a wave; ``stays``: a rollback leaves it on green."""
    if migration.check == 0:
        return Step.REST
    if state in _ON_BLUE or state is TopicState.REPLICATING:
        return _before_the_end(migration, wave, state)
    if stays or migration.state in ONWARD:
        return Step.REST if state is TopicState.MIGRATED else Step.DRAIN
    return Step.TAKE_BACK


def _before_the_end(migration: Migration, wave: int, state: TopicState) -> Step:
    """The step for a topic that blue has not terminated."""
    held = state is TopicState.REPLICATING
    if migration.state in BACK:
        return Step.RELEASE if held else Step.REST
    if held:
        # In a pause too: its producers wait.
        return Step.CATCH_UP
    begins = migration.state is MigrationState.RUNNING and wave <= migration.wave
    return Step.BEGIN if begins else Step.REST
