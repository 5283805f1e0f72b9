"""The job of a story: both operators as a replay runs them, and the store that they ask."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Final, NamedTuple

from simulation.ownership.redis.server import MemoryServer
from simulation.replay.batches import Replay, rounds_of
from sources.records import Record
from tests.transcripts.fleet import CLUSTER
from tests.transcripts.wording import explanation_lines, refusal_lines, round_lines
from trimtab.explaining.telling import of_subject
from trimtab.intake.snapshot import IntakeSettings
from trimtab.settings import Settings
from trimtab.store.requests import BatchId, issue_commands, transitions
from trimtab.wire.command import Command
from trimtab.wire.rounds import RoundRecord

GENERATION: Final = 1
QUERY: Final = "story"


class _Batch(NamedTuple):
    """What Spark would run again."""

    number: int
    at_ms: int
    records: Sequence[Record]
    before: Replay


class Job:
    """Opens the store; give it every batch in order."""

    def __init__(self, server: MemoryServer, settings: Mapping[str, object]) -> None:
        self._server = server
        # The first look closes it: nothing is opened that was not rebuilt.
        self._server.open(CLUSTER, GENERATION, "")
        self._server.open(CLUSTER, GENERATION, "", self._server.history)
        self._replay = Replay(IntakeSettings(), Settings.parse(settings))
        self._last = _Batch(-1, 0, (), self._replay)
        self._issued: list[Command] = []

    def run(self, at_ms: int, records: Sequence[Record]) -> Iterator[str]:
        """A batch: what the round decides, and what the store refuses."""
        before = deepcopy(self._replay)
        self._last = _Batch(self._last.number + 1, at_ms, records, before)
        return self._run()

    def again(self) -> Iterator[str]:
        """The last batch once more, as Spark repeats one that was not committed."""
        after = self._replay.fingerprint(CLUSTER)
        self._replay = deepcopy(self._last.before)
        yield from self._run()
        same = self._replay.fingerprint(CLUSTER) == after
        yield f"what is remembered afterwards is {'the same' if same else 'NOT THE SAME'}"

    def why(self, subject: str) -> Iterator[str]:
        """The answer of the last round."""
        witness = self._replay.clusters[CLUSTER].witness
        if witness is None:
            raise ValueError(f"why {subject}: no round was held")
        return explanation_lines(of_subject(witness, subject))

    def _run(self) -> Iterator[str]:
        rows = self._replay.run(self._last.at_ms, self._last.records)
        for record in rounds_of(rows).values():
            yield from round_lines(record)
            yield from self._dispose(record)

    def _dispose(self, record: RoundRecord) -> Iterator[str]:
        """As `streaming.query.batch.BatchWriter`; brokers get their commands from the store."""
        number = self._last.number
        requests = transitions(record, BatchId(QUERY, number))
        if not requests:
            return
        done = self._server.apply_batch(
            CLUSTER,
            requests,
            generation=GENERATION,
            query_id=QUERY,
            batch=number,
            server_ms=self._server.now_ms(),
        )
        yield from refusal_lines(done.outcomes)
        issued = [*issue_commands(requests, done.outcomes)]
        if done.repeated:
            equal = "equal to the first" if issued == self._issued else "NOT EQUAL to the first"
            yield "the store has done this batch: nothing changes, no broker is told again"
            yield f"Kafka gets {len(issued)} commands again, {equal}"
        self._issued = issued
