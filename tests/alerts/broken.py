"""What breaks, minute by minute, in the metrics of the job's own code: ten minutes of calm first.

The parts are the real ones; only the minute is given to them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Final

import msgspec
import pytest
from redis import Redis

from deploy.redis_server import RedisServer
from sinks.errors import Fenced
from sinks.exposition import Exposition
from sinks.redis.server.connections import redis_client
from streaming.leader.leadership import Leadership
from streaming.metrics import progress
from streaming.metrics.bounces import Bounces
from streaming.metrics.gauges import show_dead_letter, show_intake, show_outcomes, show_round
from streaming.metrics.migrations import MigrationGauges
from streaming.metrics.progress import ProgressListener
from streaming.watch.durability import Durability
from streaming.watchdog import Progress
from tests.faults.topics import Claims
from tests.support.clusters_by_rows import said
from tests.support.fleets import fleet, round_at
from tests.support.migrations import RUNNING
from tests.support.recorded_batches import START, held
from tests.support.reports import bundle
from trimtab.migration.migration import Counts
from trimtab.migration.progress import advance
from trimtab.store.requests import BatchId, transitions
from trimtab.wire import keys
from trimtab.wire.intent import IntentKind
from trimtab.wire.ownership import TransitionOutcome
from trimtab.wire.planned import ForecastRecord, PlannedMove, SettledMove
from trimtab.wire.rows import DeadLetter, Intake

CALM: Final = 10
"""Minutes before it breaks."""
CLUSTER: Final = "c"
MIGRATION: Final = replace(RUNNING, cluster=CLUSTER)


class Stack:
    """A job's exporting parts, and what is said of a minute."""

    def __init__(self, client: Redis, folder: Path, patch: pytest.MonkeyPatch) -> None:
        """``client``: of a Redis that keeps what it acknowledges."""
        self.folder, self.minute = folder, 0
        self.shown = Exposition()
        self.claims = Claims()
        self.leadership = Leadership(self.claims.claim, self.shown)
        self.bounces = Bounces(self.shown)
        self.listener = ProgressListener(self.shown, Progress())
        self.migrations = MigrationGauges(self.shown, self._seconds, self._seconds)
        Durability(client, self.shown).look()
        self.fleet = fleet({bundle(i, 8): "a:1" for i in range(8)})
        self.troubled = held(CLUSTER)
        """The round in which the fleet got into trouble."""
        patch.setattr(progress, "time", SimpleNamespace(time=lambda: self.minute * 60.0))

    def _seconds(self) -> float:
        return self.minute * 60.0

    def batch(self, lag: int = 0) -> None:
        """A minute's batch of a hundred reports; ``lag`` of them are not read yet."""
        read = self.minute * 100
        topic = keys.LOAD_REPORTS
        source = {
            "startOffset": {topic: {"0": read - 100}},
            "endOffset": {topic: {"0": read}},
            "latestOffset": {topic: {"0": read + lag}},
            "numInputRows": 100,
        }
        self.listener.show(
            {"durationMs": {"triggerExecution": 200}, "sources": [source], "stateOperators": []}
        )

    def intake(self) -> None:
        show_intake(self.shown, Intake(cluster=CLUSTER, accepted=10, newest_ms=1), 1)

    def round(self, **changes: object) -> None:
        """A round with 40 bundles."""
        record = msgspec.structs.replace(
            held(CLUSTER), at=START + 60_000 * self.minute, summary={"bundles": 40.0}, **changes
        )
        show_round(self.shown, record)
        self.bounces.note(record)
        requests = transitions(record, BatchId("q", self.minute))
        accepted = [TransitionOutcome(id=r.id, bundle=r.bundle, accepted=True) for r in requests]
        show_outcomes(self.shown, CLUSTER, requests, accepted)

    def migrate(self, counts: Counts) -> None:
        """A look at a migration of which that is known, as the job goes on with it."""
        it = advance(MIGRATION, (counts,), 0, START + 60_000 * self.minute)
        self.migrations.show(CLUSTER, [it], {it.id: it.counts})

    def balance(self) -> None:
        """A minute's reports and moves, of which none is wrong."""
        self.batch()
        self.intake()
        self.round(moves=moves(1))

    def calm(self) -> None:
        """A minute in which nothing is wrong, and a topic migrates."""
        self.balance()
        self.migrate(Counts(active=99 - self.minute, migrated=self.minute, attempts=self.minute))


def moves(number: int, source: str = "a:1", to: str = "b:1") -> tuple[PlannedMove, ...]:
    return tuple(
        PlannedMove(
            bundle=bundle(i, 64), source=source, destination=to, reason="high-pair", epoch=(1, 1)
        )
        for i in range(number)
    )


def stall(_: Stack) -> None:
    """The query hangs: no batch ends."""


def lag(stack: Stack) -> None:
    stack.calm()
    stack.batch(lag=30_000)


def lose_a_broker(stack: Stack) -> None:
    """Its bundles get no other: the round's repairs never reach the journal."""
    stack.calm()
    if stack.minute == CALM:
        lost = said(IntentKind.BROKER_LOST, broker="a:1")
        stack.troubled = round_at(stack.fleet, 2000, lost)
    later = stack.troubled.at + 60_000 * (stack.minute - CALM)
    show_round(stack.shown, msgspec.structs.replace(stack.troubled, at=later))


def storm(stack: Stack) -> None:
    stack.calm()
    stack.round(moves=moves(10))


def bounce(stack: Stack) -> None:
    stack.calm()
    there = ("b:1", "a:1") if stack.minute % 2 else ("a:1", "b:1")
    stack.round(moves=moves(1, *there))


def silence(stack: Stack) -> None:
    stack.batch()
    stack.round()


def poison(stack: Stack) -> None:
    stack.calm()
    letter = DeadLetter(
        reason="bad-json",
        detail="",
        topic=keys.LOAD_REPORTS,
        partition=0,
        offset=1,
        key="c/b:1",
        size=2,
        head="",
    )
    for _ in range(5):
        show_dead_letter(stack.shown, letter)


def doubt(stack: Stack) -> None:
    stack.calm()
    if stack.minute == CALM:
        raised = said(IntentKind.DOUBT, name="clock", level="unstable")
        stack.troubled = round_at(stack.fleet, 3000, raised)
    show_round(stack.shown, stack.troubled)


def fence(stack: Stack) -> None:
    """Another job claims; the heartbeat of this one is told."""
    stack.calm()
    if stack.minute == CALM:
        stack.claims.claim()
        with suppress(Fenced):
            stack.leadership.beat()


def fight(stack: Stack) -> None:
    """A supervisor starts each fenced job again; the fenced ones are never scraped."""
    stack.calm()
    stack.leadership = Leadership(stack.claims.claim, stack.shown)


def mispredict(stack: Stack) -> None:
    stack.calm()
    missed = ForecastRecord(before=0.5, predicted=0.4, realised=0.7)
    settled = SettledMove(
        bundle=bundle(0),
        source="a:1",
        destination="b:1",
        round=1,
        seconds=120.0,
        left=missed,
        joined=missed,
    )
    stack.round(settled=(settled,))


def forget_the_file(stack: Stack) -> None:
    """A real Redis without an append-only file."""
    stack.calm()
    if stack.minute == CALM:
        with (
            RedisServer(stack.folder, settings=["appendonly no"]) as server,
            redis_client(server.url) as client,
        ):
            Durability(client, stack.shown).look()


def fail_steps(stack: Stack) -> None:
    """Green does not answer: every step from now on fails, until the gate pauses all."""
    stack.balance()
    failed = 20 * (stack.minute - CALM + 1)
    stack.migrate(Counts(active=89, migrated=CALM, attempts=CALM + failed, errors=failed))


def wait_for_readers(stack: Stack) -> None:
    """No consumer reads the rest of what has ended."""
    stack.balance()
    stack.migrate(Counts(active=0, draining=89, migrated=CALM, backlog=7, attempts=CALM))


BROKEN: Final[Mapping[str, tuple[Callable[[Stack], None], ...]]] = {
    "TrimtabBatchesStalled": (stall,),
    "TrimtabInputLag": (lag,),
    "TrimtabBundleUnowned": (lose_a_broker,),
    "TrimtabMoveStorm": (storm,),
    "TrimtabBounces": (bounce,),
    "TrimtabReportsSilent": (silence,),
    "TrimtabPoison": (poison,),
    "TrimtabDoubt": (doubt,),
    "TrimtabFenced": (fence, fight),
    "TrimtabPredictionError": (mispredict,),
    "TrimtabRedisNotDurable": (forget_the_file,),
    "TrimtabMigrationPaused": (fail_steps,),
    "TrimtabMigrationStalled": (wait_for_readers,),
}
"""Each alert, and what makes it fire."""
