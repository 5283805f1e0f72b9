"""How a migration goes on by what is seen of its topics: gates, waves, its end.

running        too many steps fail: paused
running        all topics of the waves so far have left or drain, the backlog is small: next wave
running,paused no topic is left in any wave, and each bundle's owner has named its topics: completed
rolling back   each topic that had begun is back, or stays: rolled back
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final, NamedTuple

from trimtab.migration.life import ONWARD, MigrationEvent, MigrationState
from trimtab.migration.migration import Counts, Migration, sum_up

FEWEST_STEPS: Final = 20
"""Steps from which a share of failures is judged. Fewer: one slow answer pauses everything; more:
many clients wait before it is noticed."""


_HAS_LOST: Final = "the store has lost the records of "


class Mark(NamedTuple):
    """What of a migration changes as it comes further. Steps that fail are no progress."""

    state: MigrationState
    wave: int
    unseen: int
    topics: int
    done: int


def mark_of(migration: Migration, total: Counts) -> Mark:
    """How far a migration has come if the counts of its topics are ``total``."""
    done = total.attempts - total.errors
    return Mark(migration.state, migration.wave, migration.unseen, total.topics, done)


def advance(
    migration: Migration, counts: tuple[Counts, ...], unseen: int, now_ms: int
) -> Migration:
    """The migration after a look at its topics; ``counts`` by wave, ``unseen``: bundles of the
    scope whose owner has not named all topics of the waves so far."""
    after = _judged(migration, counts, unseen, now_ms)
    is_further = mark_of(after, after.total) != mark_of(migration, migration.total)
    return replace(after, moved=now_ms) if is_further else after


def _judged(
    migration: Migration, counts: tuple[Counts, ...], unseen: int, now_ms: int
) -> Migration:
    it = replace(migration, counts=counts, unseen=unseen, seen=now_ms)
    if it.state is MigrationState.ROLLING_BACK:
        lost = _say_lost(migration.total, it.total)
        it = replace(it, why=lost or it.why)
        return it.after(MigrationEvent.FINISH, ended=now_ms) if _is_back(it.total) else it
    if it.state not in ONWARD or it.state is MigrationState.COMPLETED:
        return it
    if it.wave == it.last_wave and unseen == 0 and it.total.left == 0:
        return it.after(MigrationEvent.FINISH, ended=now_ms, why="", stopped=False)
    if it.state is MigrationState.PAUSED:
        return it
    failing = say_failing(it)
    if failing:
        return it.after(MigrationEvent.STOP, why=failing, stopped=True)
    if it.wave == it.last_wave:
        return replace(it, why="")
    closed = say_closed(it)
    if closed:
        return replace(it, why=closed)
    # No broker has named a bundle for this wave yet.
    return forget_failures(replace(it, wave=it.wave + 1, why="", unseen=1))


def forget_failures(migration: Migration) -> Migration:
    """The migration; of its failures only later ones count."""
    total = migration.total
    return replace(migration, before=(total.attempts, total.errors))


def say_failing(migration: Migration) -> str:
    """Why the error rate stops the migration; empty if it does not."""
    total, (attempts, errors) = migration.total, migration.before
    tried, failed = total.attempts - attempts, total.errors - errors
    if tried < FEWEST_STEPS or failed <= migration.gate.errors * tried:
        return ""
    return f"{failed} of {tried} steps failed; the gate allows {migration.gate.errors:.1%}"


def say_closed(migration: Migration) -> str:
    """Why the wave after the present one may not begin; empty if it may."""
    begun = sum_up(*migration.counts[: migration.wave + 1])
    if migration.unseen:
        return f"{migration.unseen} bundles whose owner has not named their topics"
    waiting = begun.active + begun.replicating
    if waiting:
        return f"{waiting} topics of this wave are still written on blue"
    if begun.backlog > migration.gate.backlog:
        return f"a backlog of {begun.backlog}; the gate allows {migration.gate.backlog}"
    return ""


def estimate_end(migration: Migration) -> int | None:
    """When the last topic will have left at the pace so far (epoch ms); None if it is not known."""
    total = migration.total
    # What began on green did not have to go there.
    gone = total.migrated - total.began
    if migration.state is not MigrationState.RUNNING or gone <= 0 or migration.unseen:
        return None
    if migration.why:
        # The next wave waits, and it is not known for how long.
        return None
    took = migration.seen - migration.at
    return migration.seen + took * total.left // gone


def _say_lost(before: Counts, now: Counts) -> str:
    """Say that the store has fewer records than topics to roll back; empty if not."""
    if before.begun <= now.topics:
        return ""
    return (
        f"{_HAS_LOST}{before.begun - now.topics} topics or more; they stay as they are: a new "
        "migration of their scope takes those on that blue still has"
    )


def count_lost(migration: Migration) -> int:
    """At least how many topics' records the store lost before a rollback; 0 if none are known.

    It is read from ``why``, which `advance` wrote: a member of its own would change the form of a
    migration, which jobs, brokers and replays of several versions read. The number cannot be
    counted again, because the counts before the loss are gone."""
    said = migration.why.removeprefix(_HAS_LOST)
    return 0 if said == migration.why else int(said.partition(" ")[0])


def _is_back(total: Counts) -> bool:
    """Whether each topic that had begun is judged."""
    gone = total.terminated + total.draining + total.migrated
    return total.replicating == 0 and gone == total.stays
