"""Reads the active driver's heartbeats from the topic of generations."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import Final

import msgspec
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from sinks.errors import KafkaUnavailable, Misconfigured, SinkError
from sinks.kafka.clients import TIMEOUT_SECONDS, UNKNOWN_TOPIC, failure, settings
from sinks.kafka.generation import ClaimRecord, Sign
from sinks.kafka.readable import MALFORMED
from trimtab.wire.keys import GENERATIONS

_TAIL: Final = 100
"""Offsets before the end to search for the last record: each record takes two, since Kafka marks
the end of its transaction."""

_record = msgspec.json.Decoder(ClaimRecord)


class Signs:
    """Reads the topic from its last record on. Joins no group, commits nothing; one thread only."""

    def __init__(self, bootstrap: str, client: Mapping[str, str] = MappingProxyType({})) -> None:
        self._bootstrap = bootstrap
        reader = {"group.id": "trimtab-standby", "enable.auto.commit": False}
        ends = {"enable.partition.eof": True, "auto.offset.reset": "earliest"}
        # A fenced job cannot write at all, so a record is a sign before its transaction ends.
        all_of_them = {"isolation.level": "read_uncommitted"}
        self._consumer = Consumer(settings(bootstrap, client, **reader, **ends, **all_of_them))
        self._begun = False

    def newest(self, seconds: float) -> Sign | None:
        """The newest record not returned before; None if none came in ``seconds``.

        The first call returns the last record of any age; FAREWELL if there never was one.
        Raises KafkaUnavailable, so that None always means silence and never an absent Kafka, and
        Misconfigured.
        """
        here = TopicPartition(GENERATIONS, 0)
        try:
            low, high = self._consumer.get_watermark_offsets(here, timeout=TIMEOUT_SECONDS)
            if low == high:
                return Sign.FAREWELL
            if not self._begun:
                here.offset = max(low, high - _TAIL)
                self._consumer.assign([here])
                self._begun = True
                seconds = TIMEOUT_SECONDS
            return self._last_of_what_comes(seconds)
        except KafkaException as error:
            raise self._failure(error.args[0]) from error

    def close(self) -> None:
        self._consumer.close()

    def _last_of_what_comes(self, seconds: float) -> Sign | None:
        """Read to the topic's end once a record came."""
        newest = None
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            message = self._consumer.poll(left)
            if message is None:
                break
            if (error := message.error()) is None:
                # What anybody else wrote here is no sign of a driver.
                with suppress(*MALFORMED):
                    newest = _record.decode(message.value() or b"").sign
            elif error.code() == KafkaError._PARTITION_EOF:
                # Also comes after the mark of a transaction's end, which is not a record.
                if newest is not None:
                    break
            elif isinstance(failed := self._failure(error), Misconfigured):
                raise failed
        return newest

    def _failure(self, error: KafkaError) -> SinkError:
        failed = failure(self._bootstrap, "reading the heartbeats", error)
        return KafkaUnavailable(str(failed)) if error.code() in UNKNOWN_TOPIC else failed
