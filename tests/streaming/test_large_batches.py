"""What a batch decided reaches Redis and Kafka in parts that both take, however much it is."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Any, Final, cast

import msgspec
import pytest
import redis
from pyspark.sql import DataFrame

from simulation.replay.batch_records import decode_batches
from sinks.exposition import Exposition
from sinks.kafka.pages import PAGE as PUBLISHED
from sinks.kafka.publisher import Outgoing
from sinks.redis.cluster_gate import ClusterGate
from sinks.redis.ownership_store import PAGE, OwnershipStore
from sinks.redis.scripts import transition_script
from streaming.leader.leadership import Leadership
from streaming.leader.store_opening import StoreOpener
from streaming.query.batch import BatchWriter
from streaming.sink_retry import SinkRetry
from streaming.watchdog import Progress
from tests.faults.job import Frame, Offsets
from tests.faults.topics import Claims, Topics
from tests.support.opening import keep_alive, let_in, server_ms
from tests.support.recorded_batches import held
from tests.support.reports import bundle
from trimtab.wire import keys
from trimtab.wire.pieces import PIECE
from trimtab.wire.planned import PlannedRepair
from trimtab.wire.rounds import RoundRecord
from trimtab.wire.rows import Tag, json_row

BROKERS: Final = [f"broker-{number}:8080" for number in range(50)]
TAKES: Final = 1 << 20
"""Bytes of a record that a topic takes unless it is told otherwise."""


class Strict(Topics):
    """Takes what Kafka takes, in calls that are over in time."""

    def publish(self, records: Iterable[Outgoing]) -> None:
        page = list(records)
        assert max(len(each.value) for each in page) <= PIECE < TAKES
        assert sum(len(each.value) for each in page) < PUBLISHED + PIECE
        super().publish(page)


class Watched(redis.Redis):
    """Notes how many transitions each script run had."""

    def __init__(self, client: redis.Redis) -> None:
        super().__init__(connection_pool=client.connection_pool)
        self.pages = list[int]()

    def evalsha(self, sha: str, numkeys: int, *arguments: Any) -> Any:
        if sha == transition_script().sha:
            self.pages.append(len(msgspec.json.decode(arguments[numkeys])["requests"]))
        return super().evalsha(sha, numkeys, *arguments)


class Job:
    """The sinks of a job without operators, at batch 7."""

    def __init__(self, client: redis.Redis, cluster: str, topics: Topics) -> None:
        self.client, self.cluster, self.topics = Watched(client), cluster, topics
        shown, store = Exposition(), OwnershipStore(self.client)
        opener = StoreOpener(
            ClusterGate(client), store, lambda _: {}, Leadership(Claims().claim, shown), shown
        )
        retry = SinkRetry(threading.Event(), Progress(), shown)
        self._writer = BatchWriter(
            store, topics, opener, Offsets("q"), retry, lambda: server_ms(client)
        )

    def write(self, record: RoundRecord) -> None:
        frame: Any = Frame([json_row(self.cluster, Tag.ROUND, record)])
        self._writer(cast(DataFrame, frame), 7)


def repairing(cluster: str, number: int) -> RoundRecord:
    names = (bundle(i % 256, 256, f"t/n{i // 256}") for i in range(number))
    return msgspec.structs.replace(
        held(cluster),
        repairs=tuple(
            PlannedRepair(
                bundle=name,
                event="assign",
                reason="unowned",
                epoch=(0, 0),
                broker=BROKERS[i % len(BROKERS)],
                why=f"it was given up, and no broker has it; {BROKERS[i % len(BROKERS)]} gets it",
            )
            for i, name in enumerate(names)
        ),
    )


@pytest.mark.parametrize(
    "number",
    [
        pytest.param(7000),
        pytest.param(70_000, marks=pytest.mark.slow),
        pytest.param(120_000, marks=pytest.mark.slow),
    ],
)
def test_very_many_repairs_go_through_in_parts(client: redis.Redis, number: int) -> None:
    """More than a round plans: `round.max_moves` may ask for as many moves."""
    cluster = f"large-{number}"
    let_in(client, cluster, 1)
    keep_alive(client, cluster, BROKERS)
    job, record = Job(client, cluster, Strict()), repairing(cluster, number)

    job.write(record)
    told = job.client.pages.copy()
    job.write(record)

    assert sum(told) == number
    assert max(told) <= PAGE
    first, again = decode_batches(job.topics.all(keys.ROUNDS))
    assert first == again
    assert first.rounds == (record,)
    assert client.hlen(keys.ownership_key(cluster)) == number + 1  # its mark
    # A full journal names the rest: nothing carries it to Kafka here.
    left_out = client.scard(keys.unjournalled_key(cluster))
    assert client.xlen(keys.journal_key(cluster)) + left_out == number
    assert sum(client.xlen(keys.command_stream(cluster, each)) for each in BROKERS) == number
    copies = [each.value for each in job.topics.all(keys.COMMANDS)]
    assert len(copies) == 2 * number
    assert copies[:number] == copies[number:]
