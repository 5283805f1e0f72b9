"""What lists of a large fleet cost over HTTP: time until the first page, and the server's memory.

Redis holds the records of 10,000 brokers with 100 bundles each, and Kafka an hour's rounds of them,
written as the job writes them. `trimtab api` is a process of its own, with its defaults. Each list
is asked for its first page of 100 again and again on one connection, and answered whole. The memory
is what the process holds in RAM after all of them.
"""

from __future__ import annotations

import os
import sysconfig
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Final
from urllib.parse import urlencode

import httpx2
import msgspec
import numpy as np
import psutil
from redis import Redis

from benchmarks.figures import Bar, Figure, Limit, figure
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

BROKERS: Final = 10_000
BUNDLES: Final = 100
"""Of each broker."""
ROUNDS: Final = 60
ANSWERS: Final = 200
START_S: Final = 120.0
PAGE_MS: Final = 200.0
MEMORY_MIB: Final = 500.0
_CHUNK: Final = 10_000
_SHOWN: Final = 50
"""Brokers that the page shows at once."""


def measure(folder: Path, brokers: int = BROKERS, bundles: int = BUNDLES) -> list[Figure]:
    """Fill the servers, then ask."""
    jars.fetch()
    with RedisServer(folder / "redis") as redis, KafkaServer(folder / "kafka") as kafka:
        with redis_client(redis.url) as client:
            names = fill(client, brokers, bundles)
        ensure_topics(kafka.bootstrap)
        record(kafka.bootstrap, names)
        return list(ask(folder, redis.url, kafka.bootstrap, names, brokers * bundles))


def fill(client: Redis, brokers: int, bundles: int) -> list[str]:
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


def record(bootstrap: str, brokers: list[str]) -> None:
    """Publish an hour's rounds, one a minute, in which nothing had to be done."""
    rng, publisher = np.random.default_rng(1), Publisher(bootstrap)
    for number in range(ROUNDS):
        usage = dict(zip(brokers, rng.random(len(brokers)).tolist(), strict=True))
        at = NOW_MS + 60_000 * number
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
            summary={"brokers": float(len(brokers)), "usage_mean": 0.5, "usage_range": 0.1},
            usage=usage,
            smoothed_usage=usage,
            problems=(),
            move_deadline_ms=60_000,
            settings_version=0,
            state_hash="",
        )
        settings = to_record(IntakeSettings(), DEFAULTS) if number == 0 else None
        batch = BatchRecord(
            query="bench",
            batch=number,
            generation=1,
            at=at,
            offsets={},
            rounds=(held,),
            settings=settings,
        )
        publisher.publish(list(batch_records(batch)))


def ask(
    folder: Path, redis: str, kafka: str, names: Sequence[str], bundles: int
) -> Iterator[Figure]:
    """The figures of each list, then of the server's memory."""
    port = free_port()
    program = str(Path(sysconfig.get_path("scripts")) / "trimtab")
    served = Process(
        "trimtab api",
        [program, "api", "--port", str(port)],
        folder=folder,
        log=folder / "api.log",
        environment={**os.environ, "TRIMTAB_REDIS_URL": redis, "TRIMTAB_KAFKA__BOOTSTRAP": kafka},
    )
    base = f"http://127.0.0.1:{port}/trimtab/v1/clusters"
    with httpx2.Client(timeout=START_S) as client:
        served.start(lambda: _answers(client, base), START_S)
        try:
            here = f"{base}/{CLUSTER}"
            shown = urlencode({"broker": names[:_SHOWN]}, doseq=True)
            lists = {
                "clusters": (base, "all clusters, each with its health"),
                "brokers": (f"{here}/brokers", "the busiest brokers"),
                "bundles": (f"{here}/bundles", f"of {bundles:,} bundles"),
                "bundles_of_broker": (f"{here}/bundles?broker={names[0]}", "the bundles of one"),
                "namespaces": (f"{here}/namespaces", "namespaces"),
                "overview": (f"{here}/overview", "the page's head"),
                "heat_map": (f"{here}/heat-map", "the page's heat map, 50 rows of 60 rounds"),
                "resources": (f"{here}/resources?{shown}", "what each resource of 50 adds"),
                "rounds": (f"{here}/rounds", "the last rounds"),
            }
            for name, (url, says) in lists.items():
                yield _page(client, name, url, says)
            held = psutil.Process(served.pid).memory_info().rss / 2**20
            yield figure(
                "api.memory",
                held,
                "MiB",
                "of the process, after all",
                Bar(Limit.AT_MOST, MEMORY_MIB),
            )
        finally:
            served.stop(30.0)


def _page(client: httpx2.Client, name: str, url: str, says: str) -> Figure:
    taken = []
    for _ in range(ANSWERS):
        started = time.perf_counter()
        client.get(url).raise_for_status()
        taken.append(1000 * (time.perf_counter() - started))
    worst = float(np.quantile(taken, 0.99))
    says = f"p99 of {ANSWERS}, {says}; median {median(taken):.1f} ms"
    return figure(f"api.{name}", worst, "ms", says, Bar(Limit.AT_MOST, PAGE_MS))


def _answers(client: httpx2.Client, url: str) -> bool:
    try:
        return client.get(url).is_success
    except httpx2.TransportError:
        return False
