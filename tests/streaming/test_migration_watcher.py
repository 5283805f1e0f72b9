"""What the job hears about migrations: counts that change something, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from sinks.errors import StoreUnavailable
from sinks.exposition import Exposition
from streaming.watch.migration_watcher import MigrationWatcher
from tests.support.migrations import RUNNING
from trimtab.metrics import job as metrics
from trimtab.migration.life import MigrationState
from trimtab.migration.migration import Counts, Migration, Wave
from trimtab.migration.progress import advance


@dataclass
class Shelf:
    """The migrations of a cluster, and what was published of them."""

    known: list[Migration]
    topics: dict[str, Counts] = field(default_factory=dict)
    unseen: int = 0
    absent: bool = False
    looks: int = 0
    """How often all bundles were read."""
    said: list[tuple[Any, ...]] = field(default_factory=list)
    clusters: frozenset[str] = frozenset({"blue"})

    def read(self, cluster: str) -> dict[str, Migration]:
        if self.absent:
            raise StoreUnavailable("no answer from redis")
        assert cluster == "blue"
        return {each.id: each for each in self.known}

    def counts(self, cluster: str, migration: str) -> dict[str, Counts]:
        assert (cluster, migration) == ("blue", "m")
        return self.topics

    def unnamed(self, migration: Migration) -> int:  # noqa: ARG002 - of any
        self.looks += 1
        return self.unseen

    def migration(self, *said: object) -> None:
        self.said.append(said)


def test_new_counts_are_published_by_wave() -> None:
    it = replace(RUNNING, waves=(Wave(("t/one",)),), unseen=1)
    shelf = Shelf([it], {"0": Counts(active=2), "t/one": Counts(active=2)})
    watcher = MigrationWatcher(shelf, shelf, shelf, Exposition(metrics.METRICS))
    watcher.look()
    assert shelf.said == [("blue", it, (Counts(active=2), Counts()), 0)]


def test_counts_from_which_nothing_follows_are_not_published() -> None:
    counts = (Counts(active=2),)
    shelf = Shelf([replace(RUNNING, counts=counts)], {"0": counts[0]})
    MigrationWatcher(shelf, shelf, shelf, Exposition(metrics.METRICS)).look()
    assert shelf.said == []


def test_known_counts_that_open_the_next_wave_are_published() -> None:
    """Bundles were named between two looks, as if they had never been unseen."""
    it = replace(RUNNING, waves=(Wave(("t/one",)),), counts=(Counts(migrated=1), Counts()))
    shelf = Shelf([it], {"0": Counts(migrated=1)})
    MigrationWatcher(shelf, shelf, shelf, Exposition(metrics.METRICS)).look()
    assert len(shelf.said) == 1


def test_topics_that_are_enlisted_during_a_look_are_counted_before_their_bundle_is_named() -> None:
    """An owner enlists five topics and names its bundle just after the first of the two reads."""

    class Busy(Shelf):
        def unnamed(self, migration: Migration) -> int:
            found = super().unnamed(migration)
            self.enlist()
            return found

        def counts(self, cluster: str, migration: str) -> dict[str, Counts]:
            found = dict(super().counts(cluster, migration))
            self.enlist()
            return found

        def enlist(self) -> None:
            self.topics, self.unseen = {"0": Counts(active=5)}, 0

    shelf = Busy([replace(RUNNING, unseen=1)], unseen=1)
    MigrationWatcher(shelf, shelf, shelf, Exposition(metrics.METRICS)).look()
    [(_, migration, counts, unseen)] = shelf.said
    assert advance(migration, counts, unseen, 1).state is MigrationState.RUNNING


def test_migrations_that_have_ended_are_left() -> None:
    ended = (MigrationState.COMPLETED, MigrationState.ROLLED_BACK)
    shelf = Shelf([replace(RUNNING, state=state) for state in ended], {"0": Counts(active=1)})
    MigrationWatcher(shelf, shelf, shelf, Exposition(metrics.METRICS)).look()
    assert shelf.said == []


def test_what_a_rollback_has_left_on_green_is_shown_after_its_end() -> None:
    """The figure dropped to 0 when somebody had to act on it."""
    left = Counts(active=5, terminated=1, migrated=2, stays=3, backlog=7, attempts=9, errors=9)
    it, shown = replace(RUNNING, state=MigrationState.ROLLED_BACK), Exposition(metrics.METRICS)
    shelf = Shelf([replace(it, counts=(left,))], {"0": left})
    watcher = MigrationWatcher(shelf, shelf, shelf, shown)
    watcher.look()
    topics = [value(shown, "trimtab_migrating_topics", state=each) for each in STATES]
    assert topics == [0, 0, 1, 0, 2, 3]
    assert value(shown, "trimtab_migration_backlog_messages") == 7
    assert value(shown, "trimtab_migration_steps", result="failed") == 0
    assert shelf.said == []


def test_an_absent_redis_is_asked_again() -> None:
    shelf = Shelf([RUNNING], {"0": Counts(active=1)}, absent=True)
    watcher = MigrationWatcher(shelf, shelf, shelf, Exposition(metrics.METRICS))
    watcher.look()
    shelf.absent = False
    watcher.look()
    assert len(shelf.said) == 1


def test_a_migration_that_goes_on_is_not_idle_and_one_whose_steps_fail_is() -> None:
    now, shown = [0.0], Exposition(metrics.METRICS)
    shelf = Shelf([RUNNING], {"0": Counts(active=2)})
    watcher = MigrationWatcher(shelf, shelf, shelf, shown, lambda: now[0])

    def idle() -> float:
        watcher.look()
        now[0] += 10.0
        return value(shown, "trimtab_migration_idle_seconds")

    assert [idle(), idle()] == [0.0, 10.0]
    shelf.topics = {"0": Counts(active=2, attempts=5, errors=5)}
    assert idle() == 20.0
    shelf.topics = {"0": Counts(active=1, terminated=1, attempts=6, errors=5)}
    assert [idle(), idle()] == [0.0, 10.0]
    shelf.known = [replace(RUNNING, state=MigrationState.PAUSED)]
    assert idle() == 0.0
    shelf.known = [replace(RUNNING, state=MigrationState.ROLLING_BACK)]
    assert [idle(), idle()] == [0.0, 10.0]


def test_a_new_driver_goes_on_counting_how_long_a_migration_stands_still() -> None:
    """A driver that is killed every ten minutes would raise no alarm."""
    counts = (Counts(active=2, attempts=5, errors=5),)
    it = replace(RUNNING, counts=counts, moved=40_000)

    def idle(topics: Counts, it: Migration = it) -> float:
        shown = Exposition(metrics.METRICS)
        shelf = Shelf([it], {"0": topics})
        MigrationWatcher(shelf, shelf, shelf, shown, lambda: 7.0, lambda: 100.0).look()
        return value(shown, "trimtab_migration_idle_seconds")

    assert idle(counts[0]) == 60.0
    assert idle(replace(counts[0], attempts=9, errors=9)) == 60.0
    # It has come further since; its clock was ahead; an earlier version wrote no time.
    assert idle(replace(counts[0], attempts=6)) == 0.0
    assert idle(counts[0], replace(it, moved=140_000)) == 0.0
    assert idle(counts[0], replace(it, moved=0)) == 0.0


def test_a_migration_is_shown_as_stopped_if_its_gate_has_paused_it() -> None:
    shown = Exposition(metrics.METRICS)
    stopped = advance(RUNNING, (Counts(active=9, attempts=40, errors=9),), 0, 1)
    shelf = Shelf([stopped], {"0": stopped.counts[0]})
    watcher = MigrationWatcher(shelf, shelf, shelf, shown)
    watcher.look()
    assert value(shown, "trimtab_stopped_migrations") == 1
    # What has ended goes on while it is paused, and its share of failures falls.
    shelf.topics = {"0": Counts(active=9, attempts=400, errors=9)}
    watcher.look()
    assert value(shown, "trimtab_stopped_migrations") == 1
    shelf.known = [replace(RUNNING, state=MigrationState.PAUSED)]
    watcher.look()
    assert value(shown, "trimtab_stopped_migrations") == 0


STATES = ("active", "replicating", "terminated", "draining", "migrated", "stays")


def value(shown: Exposition, name: str, **labels: str) -> float:
    [found] = [
        each.value
        for family in text_string_to_metric_families(shown.text().decode())
        for each in family.samples
        if each.name == name and each.labels == {"cluster": "blue", **labels}
    ]
    return found


def test_bundles_are_read_while_some_are_unnamed_and_before_a_step_only() -> None:
    it = replace(RUNNING, waves=(Wave(("t/one",)),))
    shelf = Shelf([it], {"0": Counts(active=2)})
    watcher = MigrationWatcher(shelf, shelf, shelf, Exposition(metrics.METRICS))
    watcher.look()
    assert shelf.looks == 0
    shelf.known = [replace(it, unseen=1)]
    watcher.look()
    assert shelf.looks == 1
    shelf.known, shelf.topics = [it], {"0": Counts(migrated=2)}
    watcher.look()
    assert shelf.looks == 2
