"""The job's generation: the number of its claim in a Kafka topic of one partition.

a claim:
  start a producer: Kafka fences every earlier claimer, and aborts its open transaction
  read the committed records: only this claimer can add to them now
  write a number above all those read, above the topic's end, and above the caller's minimum
If a newer claimer comes in between, the last step is fenced and the number is not assigned. So no
two claims have the same number, and a later one has a larger number while Kafka keeps the topic. If
the topic was recreated, the caller knows the lost numbers from Redis. Brokers may remember those of
a Kafka and a Redis that are both gone: the first claim of all is the clock's seconds, above them.

While it is active, the claimer keeps writing heartbeats for standbys.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final

import msgspec
import stamina
from confluent_kafka import KafkaError, KafkaException, Producer

from sinks.errors import Fenced, KafkaUnavailable, SinkError
from sinks.kafka.clients import TIMEOUT_SECONDS, failure, settings
from sinks.kafka.last_claim import highest_generation
from trimtab.wire.keys import GENERATIONS

_TRANSACTIONAL_ID: Final = "trimtab-job"

_CLAIM_SECONDS: Final = 15.0
"""Time for Kafka's transaction coordinator, which needs a few seconds after Kafka's own start."""

_TRANSACTION_SECONDS: Final = 60.0
"""Kafka aborts a transaction that takes longer, and its producer seems fenced: must be longer than
an outage that interrupts a heartbeat."""


class Sign(StrEnum):
    """The kind of a record on the topic of generations."""

    CLAIM = "claim"
    HEARTBEAT = "heartbeat"
    FAREWELL = "farewell"
    """The job ended in an orderly way: a standby need not wait for silence."""


class ClaimRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A claim on the topic; ``at`` is the claimer's clock (epoch ms), for people only."""

    job: str
    at: int
    host: str
    pid: int
    sign: Sign = Sign.CLAIM
    generation: int = 0
    """In every record, as compaction keeps only the last one. 0 in those of earlier versions,
    which number a claim by its offset."""
    v: int = 1


def _first_generation() -> int:
    """Seconds since 1970. Each later claim adds one, and jobs start less than once a second."""
    return time.time_ns() // 1_000_000_000


def claim(
    bootstrap: str,
    job_id: str,
    client: Mapping[str, str] = MappingProxyType({}),
    above: int = 0,
) -> Claim:
    """Become the newest job; fences every older claim.

    ``above``: a generation already in use, which the topic may have lost. Raises KafkaUnavailable,
    Misconfigured, and Fenced if a newer claim interrupted this one.
    """
    return Claim(bootstrap, job_id, client, above)


class Claim:
    """A claim, held until a newer one is made; its ``generation`` is above every older one's."""

    def __init__(
        self, bootstrap: str, job_id: str, client: Mapping[str, str], above: int = 0
    ) -> None:
        self._bootstrap = bootstrap
        self._job_id = job_id
        self._client = client
        self._in_transaction = self._aborting = False
        self._fenced: Fenced | None = None
        transactional = {
            "transactional.id": _TRANSACTIONAL_ID,
            "transaction.timeout.ms": round(1000 * _TRANSACTION_SECONDS),
        }
        self._producer = Producer(settings(bootstrap, client, **transactional))
        try:
            self._producer.init_transactions(_CLAIM_SECONDS)
        except KafkaException as error:
            raise failure(
                bootstrap, "claiming a generation", error.args[0], self._producer
            ) from error
        # 0 is the generation of a bundle that has no record.
        highest = max(above, self._highest())
        self.generation = highest + 1 if highest else _first_generation()
        self._write(Sign.CLAIM)

    def assert_held(self) -> None:
        """Raise Fenced if a newer claim was made; takes about 10 ms.

        Kafka tells a producer that it is fenced only when it writes, so this writes a heartbeat to
        the topic. Raises KafkaUnavailable while there is no answer.
        """
        self._write(Sign.HEARTBEAT)

    def bid_farewell(self) -> None:
        """Tell standbys that this job is no longer active; raises as `assert_held` does."""
        if self._in_transaction:
            # An unanswered heartbeat: its transaction must end before the next begins.
            self._write(Sign.HEARTBEAT)
        self._write(Sign.FAREWELL)

    def close(self) -> None:
        """Close the producer; the generation stays claimed until a newer one is."""
        # Inside a transaction, as when fenced, it would try to abort and would warn.
        if not self._in_transaction:
            self._producer.close()

    def _highest(self) -> int:
        """Read the highest claim; called after fencing, so that nothing more can be committed."""
        attempts = stamina.retry_context(
            on=KafkaUnavailable, timeout=_CLAIM_SECONDS, attempts=None, wait_max=1.0
        )
        for attempt in attempts:
            with attempt:
                return highest_generation(self._bootstrap, self._client)
        raise AssertionError("an endless retry ended")

    def _write(self, sign: Sign) -> None:
        """Commit a record; raises SinkError."""
        if self._fenced is not None:
            # On another call librdkafka would report a call in progress.
            raise self._fenced
        try:
            self._commit(sign)
        except KafkaException as error:
            raise self._failure(error.args[0]) from error

    def _commit(self, sign: Sign) -> None:
        # A call that timed out continues inside librdkafka: the next attempt resumes it.
        if self._aborting:
            self._producer.abort_transaction(TIMEOUT_SECONDS)
            self._aborting = self._in_transaction = False
        if not self._in_transaction:
            self._producer.begin_transaction()
            self._in_transaction = True
            self._produce(sign)
        # No flush first: in a fenced producer it runs the callback with an exception set.
        self._producer.commit_transaction(TIMEOUT_SECONDS)
        self._in_transaction = False
        # Lets librdkafka report its connection errors.
        self._producer.poll(0)

    def _produce(self, sign: Sign) -> None:
        record = ClaimRecord(
            job=self._job_id,
            at=time.time_ns() // 1_000_000,
            host=socket.gethostname(),
            pid=os.getpid(),
            sign=sign,
            generation=self.generation,
        )
        self._producer.produce(
            GENERATIONS,
            key=self._job_id.encode(),
            value=msgspec.json.encode(record),
            partition=0,
        )

    def _failure(self, error: KafkaError) -> SinkError:
        self._aborting = self._aborting or error.txn_requires_abort()
        raised = failure(self._bootstrap, "holding a generation", error, self._producer)
        if isinstance(raised, Fenced):
            self._fenced = raised
        return raised
