"""The job's generation: the place of its claim in a Kafka topic of one partition.

Whoever claims later gets a larger number, whatever becomes of Redis, and Kafka fences the producer
of every earlier claim.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import msgspec
from confluent_kafka import KafkaError, KafkaException, Message, Producer

from sinks.errors import Fenced, SinkError
from sinks.kafka import TIMEOUT_SECONDS, failure, settings
from trimtab.wire.keys import GENERATIONS

_TRANSACTIONAL_ID: Final = "trimtab-job"

_CLAIM_SECONDS: Final = 15.0
"""Kafka needs a few seconds after its own start before it knows of transactions."""


class ClaimRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What the topic says of a claim; ``at`` is the claimer's clock (epoch ms), for people only."""

    job: str
    at: int
    host: str
    pid: int
    v: int = 1


def claim(bootstrap: str, job_id: str, client: Mapping[str, str] = MappingProxyType({})) -> Claim:
    """Become the newest job; every older claim is fenced from here on.

    Raises KafkaUnavailable, Misconfigured, and Fenced if a newer one came in the middle of it.
    """
    return Claim(bootstrap, job_id, client)


class Claim:
    """Held until a newer one is made; ``generation`` is larger than that of every older one."""

    def __init__(self, bootstrap: str, job_id: str, client: Mapping[str, str]) -> None:
        self._bootstrap = bootstrap
        self._job_id = job_id
        self._in_transaction = self._aborting = False
        self._offset: int | None = None
        self._fenced: Fenced | None = None
        transactional = {
            "transactional.id": _TRANSACTIONAL_ID,
            "transaction.timeout.ms": round(2000 * TIMEOUT_SECONDS),
        }
        self._producer = Producer(settings(bootstrap, client, **transactional))
        try:
            self._producer.init_transactions(_CLAIM_SECONDS)
        except KafkaException as error:
            raise failure(bootstrap, "claiming a generation", error.args[0]) from error
        # Offsets start at 0, and 0 is the generation of a bundle that has no record.
        self.generation = self._write() + 1

    def assert_held(self) -> None:
        """Raise Fenced if a newer claim was made; takes about 10 ms.

        Kafka tells a fenced producer so only when it writes: this is one more record in the topic.
        Raises KafkaUnavailable while the question has no answer.
        """
        self._write()

    def close(self) -> None:
        """Forget the producer; the generation stays claimed until a newer one is."""
        # In the middle of a transaction, as when fenced, it would try to abort and warn.
        if not self._in_transaction:
            self._producer.close()

    def _write(self) -> int:
        """Commit a claim record; its offset."""
        if self._fenced is not None:
            # Asked again, librdkafka would speak of a call in progress.
            raise self._fenced
        try:
            return self._commit()
        except KafkaException as error:
            raise self._failure(error.args[0]) from error

    def _commit(self) -> int:
        # A call that ran out of time goes on inside librdkafka: the next attempt takes it up.
        if self._aborting:
            self._producer.abort_transaction(TIMEOUT_SECONDS)
            self._aborting = self._in_transaction = False
        if not self._in_transaction:
            self._producer.begin_transaction()
            self._in_transaction = True
            self._produce()
        # No flush before: in a fenced producer it runs the callback with an exception set.
        self._producer.commit_transaction(TIMEOUT_SECONDS)
        self._in_transaction = False
        while self._offset is None:
            self._producer.poll(0.1)
        return self._offset

    def _produce(self) -> None:
        record = ClaimRecord(
            job=self._job_id,
            at=time.time_ns() // 1_000_000,
            host=socket.gethostname(),
            pid=os.getpid(),
        )
        self._offset = None
        self._producer.produce(
            GENERATIONS,
            key=self._job_id.encode(),
            value=msgspec.json.encode(record),
            partition=0,
            on_delivery=self._delivered,
        )

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is None:
            self._offset = message.offset()

    def _failure(self, error: KafkaError) -> SinkError:
        self._aborting = self._aborting or error.txn_requires_abort()
        raised = failure(self._bootstrap, "holding a generation", error)
        if isinstance(raised, Fenced):
            self._fenced = raised
        return raised
