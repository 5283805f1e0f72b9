"""Reads what the job that acts says of itself on the topic of generations."""

from __future__ import annotations

import time
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import msgspec
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from sinks.errors import KafkaUnavailable, Misconfigured, SinkError
from sinks.kafka.clients import TIMEOUT_SECONDS, UNKNOWN_TOPIC, failure, settings
from sinks.kafka.generation import ClaimRecord, Sign
from trimtab.wire.keys import GENERATIONS

_TAIL: Final = 100
"""Offsets before the end to look for the last record in: each takes two, for Kafka marks its
transaction's end."""

_record = msgspec.json.Decoder(ClaimRecord)


class Signs:
    """The topic from its last record on. Joins no group and commits nothing; for one thread."""

    def __init__(self, bootstrap: str, client: Mapping[str, str] = MappingProxyType({})) -> None:
        self._bootstrap = bootstrap
        reader = {"group.id": "trimtab-standby", "enable.auto.commit": False}
        ends = {"enable.partition.eof": True, "auto.offset.reset": "earliest"}
        # Who is fenced cannot write at all, so a record is a sign before its transaction is over.
        all_of_them = {"isolation.level": "read_uncommitted"}
        self._consumer = Consumer(settings(bootstrap, client, **reader, **ends, **all_of_them))
        self._begun = False

    def newest(self, seconds: float) -> Sign | None:
        """The newest record that was not returned before; None if none came in ``seconds``.

        The first call finds the last one there is, however old; FAREWELL if there never was one.
        Raises KafkaUnavailable, so that silence is Kafka's only where it answers, and
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
        """Up to the topic's end, once something came."""
        newest = None
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            message = self._consumer.poll(left)
            if message is None:
                break
            if (error := message.error()) is None:
                newest = _record.decode(message.value() or b"").sign
            elif error.code() == KafkaError._PARTITION_EOF:
                # Also after the mark of a transaction's end, which is nothing to hear.
                if newest is not None:
                    break
            elif isinstance(failed := self._failure(error), Misconfigured):
                raise failed
        return newest

    def _failure(self, error: KafkaError) -> SinkError:
        failed = failure(self._bootstrap, "hearing of the job that acts", error)
        return KafkaUnavailable(str(failed)) if error.code() in UNKNOWN_TOPIC else failed
