"""foreachBatch: writes the operators' decisions to Redis once and to Kafka at least once.

A batch that Spark repeats uses the same ids, and Redis answers with the first run's outcome. The
writer waits for an absent sink with the batch uncommitted: nothing is lost or decided twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TypeVar

import msgspec
import structlog
from pyspark.sql import DataFrame

from sinks.errors import Closed, Fenced, KafkaUnavailable, Misconfigured, Unavailable
from sinks.kafka.pages import batch_records, split_pages
from sinks.kafka.publisher import Outgoing, Publisher
from sinks.kafka.state_records import state_pages
from sinks.redis.answers.explanations import Explanations
from sinks.redis.answers.kept_plans import KeptPlans
from sinks.redis.answers.outcomes import Outcomes
from sinks.redis.migrations import Migrations
from sinks.redis.ownership_store import BatchOutcome, OwnershipStore
from streaming.leader.store_opening import StoreOpener
from streaming.metrics import pulsar
from streaming.metrics.bounces import Bounces
from streaming.metrics.gauges import (
    show_dead_letter,
    show_intake,
    show_intent_outcomes,
    show_outcomes,
    show_round,
)
from streaming.metrics.rejected_reports import RejectedReportLog
from streaming.query.batch_rows import BatchRows, decode_rows
from streaming.query.cluster_attempts import ClusterAttempts
from streaming.query.offsets import OffsetLog
from streaming.query.reports.rounds_due import RoundsDue
from streaming.sink_retry import SinkRetry
from streaming.sizing import SizeWatch
from trimtab.metrics import job as metrics
from trimtab.migration.migration import Migration
from trimtab.store.requests import BatchId, issue_commands, list_leaseless, transitions
from trimtab.wire import keys
from trimtab.wire.command import Command
from trimtab.wire.explanation import StoredExplanations
from trimtab.wire.ownership import Transition
from trimtab.wire.rounds import BatchRecord, JobSettings, RoundRecord
from trimtab.wire.rows import DeadLetter, Intake, Row

log = structlog.get_logger()

T = TypeVar("T")


class BatchWriter:
    """One per query; called by Spark with each batch's rows, in order, on one thread."""

    def __init__(  # noqa: PLR0913 - the sinks, and what it knows of its batches
        self,
        store: OwnershipStore,
        publisher: Publisher,
        opener: StoreOpener,
        offsets: OffsetLog,
        retry: SinkRetry,
        server_ms: Callable[[], int | None],
        *,
        explanations: Explanations | None = None,
        outcomes: Outcomes | None = None,
        plans: KeptPlans | None = None,
        migrations: Migrations | None = None,
        settings: JobSettings | None = None,
        size: SizeWatch | None = None,
        due: RoundsDue | None = None,
        suspect: Callable[[str, Iterable[str]], object] = lambda *_: None,
    ) -> None:
        """``server_ms``: Redis's time estimated by the driver's clock, None while uncertain.

        ``explanations``: the store of rounds' explanations. ``outcomes``: that of what came of
        intents. ``settings``: the operators' settings,
        recorded for replays. ``size``: watches whether the fleet outgrows the job.
        ``due``: tells the source of reports which rounds are due.
        ``suspect``: gets a cluster and its brokers that were refused because they hold no lease.
        """
        self._store = store
        self._publisher = publisher
        self._opener = opener
        self._offsets = offsets
        self._retry = retry
        self._server_ms = server_ms
        self._shown = retry.shown
        self.fenced = False
        """Whether a newer job has taken over: a retry is pointless."""
        self.settings = settings
        self.explanations = explanations
        self.outcomes, self.plans, self.migrations = outcomes, plans, migrations
        self._size, self._due = size, due
        self._suspect = suspect
        self._bounces = Bounces(self._shown)
        self._told = False
        self._disbelief = RejectedReportLog()
        self._attempts = ClusterAttempts(retry)

    def __call__(self, frame: DataFrame, number: int) -> None:
        # One action: a second would run both operators again.
        rows = [Row(*row) for row in frame.collect()]
        try:
            if rows:
                self._write(decode_rows(rows), number)
        except Fenced:
            self.fenced = True
            raise

    def _write(self, rows: BatchRows, number: int) -> None:
        batch = BatchId(self._offsets.query_id(), number)
        at, ranges = self._offsets.ranges(number)
        outgoing = self._dead_letters(rows.letters, at)
        self._intake(rows.intakes, at)
        for record in rows.rounds:
            outgoing += self._disposed(record, batch)
        show_intent_outcomes(self._shown, rows.outcomes)
        if self.plans is not None and rows.plans:
            self._write_aside("kept plans", partial(self.plans.write, rows.plans, at))
        outgoing += self._migrate(rows.migrations)
        if self.outcomes is not None and rows.outcomes:
            self._write_aside("outcomes of intents", partial(self.outcomes.write, rows.outcomes))
        done = BatchRecord(
            query=batch.query,
            batch=number,
            generation=self._opener.generation,
            at=at,
            offsets=ranges,
            rounds=tuple(rows.rounds),
            outcomes=tuple(rows.outcomes),
            plans=tuple(rows.plans),
            migrations=tuple(rows.migrations),
            exported=tuple(dict.fromkeys(row.cluster for row in rows.state)),
            settings=None if self._told and not rows.state else self.settings,
        )
        outgoing += batch_records(done)
        for page in split_pages(outgoing):
            self._publish(page)
        self._told = True
        # Last: brokers wait for commands; nothing waits for this.
        for row in rows.explanations:
            self._explain(msgspec.json.decode(row.payload, type=StoredExplanations))
        for page in state_pages(rows.state, batch, self._opener.generation):
            self._publish(page)

    def _migrate(self, migrations: list[Migration]) -> list[Outgoing]:
        """Store migrations, which the brokers of their clusters act on; returns the copies of their
        commands for Kafka. A batch that is repeated after a crash commands nothing again, so such
        a copy may be missing there."""
        told = list[Command]()
        for cluster in dict.fromkeys(each.cluster for each in migrations):
            mine = [each for each in migrations if each.cluster == cluster]
            if self.migrations is not None:
                write = partial(self._write_migrations, self.migrations, cluster, mine)
                attempt = partial(self._attempts.attempt, cluster, "changed", write)
                told += self._attempts.unless_damaged(cluster, "changed", attempt, list[Command]())
        return [copied(each) for each in told]

    def _write_migrations(
        self, store: Migrations, cluster: str, them: list[Migration]
    ) -> list[Command]:
        return self._when_open(cluster, lambda: store.write(cluster, self._opener.generation, them))

    def _write_aside(self, what: str, write: Callable[[], None]) -> None:
        """Store what people wait for."""
        try:
            self._retry.attempt("redis", Unavailable, write)
        except Misconfigured as error:
            # Rights from an earlier version; they are on trimtab.rounds too.
            log.warning(f"{what} are not stored", cause=str(error))

    def _explain(self, told: StoredExplanations) -> None:
        """Store a round's explanations; never waits for Redis."""
        if self.explanations is None:
            return
        problem = told.problem
        try:
            with self._shown.timed(metrics.SINK_SECONDS, "redis"):
                self._keep(told)
        except (Closed, Unavailable, Misconfigured) as error:
            problem = str(error)
        if problem:
            self._shown.count(metrics.UNEXPLAINED_ROUNDS, told.cluster)
            log.warning(
                "explanations of a round are not stored", cluster=told.cluster, cause=problem
            )

    def _keep(self, told: StoredExplanations) -> None:
        assert self.explanations is not None
        try:
            self.explanations.write(self._opener.generation, told)
        except Fenced as error:
            # This asks Kafka whether a newer job has claimed.
            self._opener.open(told.cluster)
            raise Closed(str(error)) from error

    def _publish(self, outgoing: list[Outgoing]) -> None:
        self._retry.attempt("kafka", KafkaUnavailable, lambda: self._publisher.publish(outgoing))

    def _dead_letters(self, rows: list[tuple[Row, DeadLetter]], at: int) -> list[Outgoing]:
        letters = [letter for _, letter in rows]
        for letter in letters:
            show_dead_letter(self._shown, letter)
        self._disbelief.tell(letters, at)
        return [Outgoing(keys.DEAD_LETTERS, row.subject, bytes(row.payload)) for row, _ in rows]

    def _intake(self, intakes: list[Intake], at: int) -> None:
        for intake in intakes:
            show_intake(self._shown, intake, at)
        # In every batch: a restarted server is closed to the brokers until the job opens it, and a
        # balanced cluster gives the job no other reason to ask.
        clusters = [intake.cluster for intake in intakes]
        for cluster in clusters if len(clusters) > 1 else ():
            # All clusters that must be rebuilt wait at the same time.
            self._open(cluster, self._opener.look)
        for cluster in clusters:
            self._open(cluster, self._opener.open)

    def _open(self, cluster: str, step: Callable[[str], None]) -> None:
        attempt = partial(self._attempts.attempt, cluster, "opened", partial(step, cluster))
        self._attempts.unless_damaged(cluster, "opened", attempt, None)

    def _disposed(self, record: RoundRecord, batch: BatchId) -> list[Outgoing]:
        return self._attempts.unless_damaged(
            record.cluster, "changed", lambda: self._dispose(record, batch), list[Outgoing]()
        )

    def _dispose(self, record: RoundRecord, batch: BatchId) -> list[Outgoing]:
        """Write a round's moves; returns the copies of its commands for Kafka."""
        show_round(self._shown, record)
        pulsar.show_round(self._shown, record)
        self._bounces.note(record)
        if self._size is not None:
            self._size.note(record)
        if self._due is not None:
            self._due.note(record)
        if record.hints is not None:
            hint = partial(self._opener.hint, record.cluster, record.hints)
            self._attempts.attempt(record.cluster, "opened", hint)
        requests = transitions(record, batch)
        if not requests:
            return []
        apply = partial(self._apply, record.cluster, requests, batch)
        done = self._attempts.attempt(record.cluster, "changed", apply)
        for show in (show_outcomes, pulsar.show_outcomes):
            show(self._shown, record.cluster, requests, done.outcomes)
        self._suspect(record.cluster, list_leaseless(requests, done.outcomes))
        if done.repeated:
            self._shown.count(metrics.REPEATED, record.cluster)
        return [copied(command) for command in issue_commands(requests, done.outcomes)]

    def _apply(
        self, cluster: str, requests: tuple[Transition, ...], batch: BatchId
    ) -> BatchOutcome:
        return self._when_open(
            cluster,
            lambda: self._store.apply_batch(
                cluster,
                requests,
                generation=self._opener.generation,
                query_id=batch.query,
                batch=batch.batch,
                server_ms=self._server_ms(),
            ),
        )

    def _when_open(self, cluster: str, write: Callable[[], T]) -> T:
        """What the write returns; a store that is closed to this job is opened, and it is tried
        again."""
        while True:
            try:
                return write()
            except (Closed, Fenced) as error:
                log.warning("ownership store is closed", cluster=cluster, cause=str(error))
                self._opener.open(cluster)


def copied(command: Command) -> Outgoing:
    """A command as Kafka gets it."""
    key = f"{command.cluster}/{command.broker}"
    return Outgoing(keys.COMMANDS, key, msgspec.json.encode(command))
