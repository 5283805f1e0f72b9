"""`trimtab api` as a process, before servers that hold a fleet as the job leaves it."""

from __future__ import annotations

import os
import sysconfig
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

import httpx2
import msgspec
import numpy as np
from redis import Redis

from benchmarks.synthetic import CLUSTER, NOW_MS, columns
from deploy import jars
from deploy.kafka_server import KafkaServer
from deploy.ports import free_port
from deploy.process import Process
from deploy.redis_server import RedisServer
from sinks.kafka.pages import batch_records
from sinks.kafka.publisher import Publisher
from sinks.kafka.topics import ensure_topics
from sinks.redis.server.connections import redis_client
from trimtab.cluster.job_settings import to_record
from trimtab.intake.snapshot import IntakeSettings
from trimtab.model import Epoch
from trimtab.ownership import State
from trimtab.shedding import DEFAULTS
from trimtab.wire import keys
from trimtab.wire.ownership import Record
from trimtab.wire.rounds import BatchRecord, RoundRecord

ROUNDS: Final = 60
START_S: Final = 120.0
_CHUNK: Final = 10_000


class ServedFleet(NamedTuple):
    """Where it is served, by which process, and the Kafka that its rounds are read from."""

    url: str
    pid: int
    kafka: str
    brokers: list[str]


@contextmanager
def served_fleet(folder: Path, brokers: int, bundles: int) -> Iterator[ServedFleet]:
    """Fill Redis with the records of ``bundles`` a broker and Kafka with an hour's rounds, and
    serve them."""
    jars.fetch()
    with RedisServer(folder / "redis") as redis, KafkaServer(folder / "kafka") as kafka:
        with redis_client(redis.url) as client:
            names = _fill(client, brokers, bundles)
        ensure_topics(kafka.bootstrap)
        _record(kafka.bootstrap, names)
        port = free_port()
        program = str(Path(sysconfig.get_path("scripts")) / "trimtab")
        addresses = {"TRIMTAB_REDIS_URL": redis.url, "TRIMTAB_KAFKA__BOOTSTRAP": kafka.bootstrap}
        served = Process(
            "trimtab api",
            [program, "api", "--port", str(port)],
            folder=folder,
            log=folder / "api.log",
            environment={**os.environ, **addresses},
        )
        url = f"http://127.0.0.1:{port}"
        served.start(lambda: _answers(f"{url}/trimtab/v1/clusters"), START_S)
        try:
            yield ServedFleet(url, served.pid, kafka.bootstrap, names)
        finally:
            served.stop(30.0)


def _fill(client: Redis, brokers: int, bundles: int) -> list[str]:
    """Write records, index and owners as the transition script leaves them; the brokers' names."""
    made = columns(brokers, bundles, 1)
    owners = [made.brokers[row] for row in made.owner.tolist()]
    for start in range(0, len(owners), _CHUNK):
        piece = slice(start, start + _CHUNK)
        part = list(zip(made.bundles[piece], owners[piece], strict=True))
        with client.pipeline(transaction=False) as asked:
            asked.hset(
                keys.ownership_key(CLUSTER),
                mapping={
                    bundle: msgspec.json.encode(
                        Record(state=State.OWNED, epoch=Epoch(1, 1), owner=owner, since=NOW_MS)
                    )
                    for bundle, owner in part
                },
            )
            asked.zadd(keys.bundles_key(CLUSTER), {bundle: 0 for bundle, _ in part})
            for bundle, owner in part:
                asked.sadd(keys.owned_key(CLUSTER, owner), bundle)
            asked.execute()
    return [*made.brokers]


def _record(bootstrap: str, brokers: Sequence[str]) -> None:
    """Publish an hour's rounds, one a minute, in which nothing had to be done."""
    rng, publisher = np.random.default_rng(1), Publisher(bootstrap)
    for number in range(ROUNDS):
        usage = dict(zip(brokers, rng.random(len(brokers)).tolist(), strict=True))
        publisher.publish(list(batch_records(round_batch(number, NOW_MS + 60_000 * number, usage))))


def round_batch(number: int, at: int, usage: dict[str, float]) -> BatchRecord:
    """A batch with one round; the first also has the settings."""
    held = RoundRecord(
        cluster=CLUSTER,
        round=number + 1,
        at=at,
        strategy="trimtab",
        placement="least-predicted-usage",
        observe_only=False,
        skipped="balanced",
        moves=(),
        refusals=(),
        refused={},
        obstacles={},
        summary={"brokers": float(len(usage)), "usage_mean": 0.5, "usage_range": 0.1},
        usage=usage,
        smoothed_usage=usage,
        problems=(),
        move_deadline_ms=60_000,
        settings_version=0,
        state_hash="",
    )
    settings = to_record(IntakeSettings(), DEFAULTS) if number == 0 else None
    return BatchRecord(
        query="bench",
        batch=number,
        generation=1,
        at=at,
        offsets={},
        rounds=(held,),
        settings=settings,
    )


def _answers(url: str) -> bool:
    try:
        return httpx2.get(url, timeout=START_S).is_success
    except httpx2.TransportError:
        return False
