"""Takes the pictures of docs/page.md: `python -m tests.page.screenshots FOLDER`.

A recorded fleet takes the place of a job: rounds on trimtab.rounds, reports on
trimtab.load-reports, records in Redis, as the job and its brokers write them.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from itertools import pairwise, product
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
from playwright.sync_api import Browser, expect, sync_playwright
from pydantic import SecretStr
from redis import Redis

from api.app import create_app
from api.context import Context
from control.plane import ControlPlane
from deploy import jars
from deploy.kafka_server import KafkaServer
from deploy.redis_server import RedisServer
from sinks.kafka.pages import batch_records
from sinks.kafka.publisher import Outgoing, Publisher
from sinks.kafka.topics import ensure_topics
from sinks.redis.answers.kept_plans import KeptPlans
from streaming.config import JobConfig, KafkaConfig
from tests.page.serving import Served
from tests.support.recorded_batches import held
from trimtab.cluster.job_settings import to_record
from trimtab.controls import Mode
from trimtab.intake.snapshot import IntakeSettings
from trimtab.kept_plans.kept_plan import Effect, KeptPlan, Step, StepKind
from trimtab.kept_plans.life import PlanState
from trimtab.model import Epoch
from trimtab.ownership import State
from trimtab.policies import Policies
from trimtab.shedding import DEFAULTS
from trimtab.store.ring import equal_edges
from trimtab.wire import keys
from trimtab.wire.ownership import Record
from trimtab.wire.planned import PlannedMove
from trimtab.wire.reports.load_report import LocalBrokerData, Resource, encode
from trimtab.wire.rounds import BatchRecord, RoundRecord

ROUNDS: Final = 60
ROUND_MS: Final = 60_000
FLEETS: Final = (("demo", 12, 40), ("large", 10_000, 10))
"""Cluster, brokers, bundles of each."""
_WHY: Final = "takes {gap:.0f} points off the busiest broker, which no smaller bundle does"


def record(
    bootstrap: str, client: Redis, cluster: str, brokers: int, bundles: int
) -> Callable[[], None]:
    """An hour of rounds that bring a skewed fleet together; what is returned adds a round and
    reports as of now."""
    rng = np.random.default_rng(1)
    names = [f"broker-{row:0{len(str(brokers))}d}.pulsar:8080" for row in range(1, brokers + 1)]
    zones = {name: f"zone-{'abcdefgh'[row % 8]}" for row, name in enumerate(names)}
    policies = Policies(domains=zones if brokers > 60 else {})
    begin = rng.uniform(0.22, 0.88, brokers)
    owned = _fill(client, cluster, names, bundles)
    start = time.time_ns() // 1_000_000 - ROUNDS * ROUND_MS + 5_000
    publisher = Publisher(bootstrap)
    usage = begin
    for number in range(ROUNDS):
        pull = 1 / (1 + np.exp((number - 25) / 5))
        usage = np.clip(0.53 + (begin - 0.53) * pull + rng.normal(0, 0.012, brokers), 0, 1)
        moves = () if number < 14 or number % 3 else _moves(names, usage, owned, rng)
        at = start + number * ROUND_MS
        one = msgspec.structs.replace(
            held(cluster),
            round=number + 1,
            at=at,
            strategy="avg",
            placement="avg",
            moves=moves,
            usage=dict(zip(names, usage.tolist(), strict=True)),
            smoothed_usage=dict(zip(names, usage.tolist(), strict=True)),
            summary={
                "brokers": float(brokers),
                "bundles": float(brokers * bundles),
                "usage_min": float(usage.min()),
                "usage_mean": float(usage.mean()),
                "usage_max": float(usage.max()),
                "usage_range": float(np.ptp(usage)),
            },
            hits={"low": (3, 8), "high": (0, 2)},
            policies=policies,
        )
        publisher.publish(list(batch_records(_batch(one, ()))))
    waits = _plan(cluster, names, owned, at)
    KeptPlans(client).write([waits], at)

    def renew() -> None:
        now_ms = time.time_ns() // 1_000_000
        newest = msgspec.structs.replace(one, round=ROUNDS + 1, at=now_ms)
        publisher.publish(list(batch_records(_batch(newest, (waits,)))))
        publisher.publish(_reports(cluster, names, usage))

    return renew


def _batch(one: RoundRecord, plans: tuple[KeptPlan, ...]) -> BatchRecord:
    return BatchRecord(
        query=one.cluster,
        batch=one.round,
        generation=1,
        at=one.at,
        offsets={},
        rounds=(one,),
        plans=plans,
        settings=to_record(IntakeSettings(), DEFAULTS),
    )


def _fill(client: Redis, cluster: str, names: list[str], bundles: int) -> dict[str, list[str]]:
    owned = {}
    for row, broker in enumerate(names):
        edges = pairwise(equal_edges(bundles))
        owned[broker] = [f"shop/orders-{row}/0x{low:08x}_0x{high:08x}" for low, high in edges]
        value = msgspec.json.encode(
            Record(state=State.OWNED, epoch=Epoch(1, 1), owner=broker, since=1_800_000_000_000)
        )
        with client.pipeline(transaction=False) as asked:
            asked.hset(keys.ownership_key(cluster), mapping=dict.fromkeys(owned[broker], value))
            asked.zadd(keys.bundles_key(cluster), dict.fromkeys(owned[broker], 0))
            asked.sadd(keys.owned_key(cluster, broker), *owned[broker])
            asked.execute()
    return owned


def _moves(
    names: list[str], usage: Any, owned: dict[str, list[str]], rng: np.random.Generator
) -> tuple[PlannedMove, ...]:
    order = np.argsort(usage)
    return tuple(
        PlannedMove(
            bundle=owned[names[busy]][int(rng.integers(len(owned[names[busy]])))],
            source=names[busy],
            destination=names[idle],
            reason="low-threshold",
            epoch=(1, 1),
            why=_WHY.format(gap=50 * (usage[busy] - usage[idle])),
        )
        for idle, busy in zip(order[:2], order[::-1][:2], strict=True)
    )


def _plan(cluster: str, names: list[str], owned: dict[str, list[str]], at: int) -> KeptPlan:
    steps = tuple(
        Step(StepKind.MOVE, owned[names[row]][0], names[row], names[row + 1], reason="range")
        for row in range(4)
    )
    effect = Effect(4, tuple(names[:5]), 48e6, 0.094, 0.041, 12.0)
    return KeptPlan(
        "60-7f3a",
        cluster,
        PlanState.PROPOSED,
        Mode.APPROVE,
        steps,
        effect,
        at,
        at + 3_600_000,
        "round 60",
    )


def _reports(cluster: str, names: list[str], usage: Any) -> list[Outgoing]:
    rng = np.random.default_rng(2)
    found = []
    for broker, most in zip(names, usage.tolist(), strict=True):
        parts = (most * rng.uniform(0.4, 0.95, 4)).tolist()
        # Direct memory has no weight unless the settings give it one.
        parts[int(rng.choice([0, 2, 3]))] = most
        cpu, direct, into, out = (Resource(100 * part, 100.0) for part in parts)
        said = LocalBrokerData(
            cpu=cpu, direct_memory=direct, bandwidth_in=into, bandwidth_out=out, last_stats={}
        )
        found.append(Outgoing(keys.LOAD_REPORTS, f"{cluster}/{broker}", encode(said)))
    return found


SIZES: Final = {"desktop": (1360, 860), "phone": (360, 780)}


def take(browser: Browser, address: str, file: Path, theme: str, size: str) -> None:
    """One picture of the page."""
    width, height = SIZES[size]
    context = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme="dark" if theme == "dark" else "light",
    )
    page = context.new_page()
    page.goto(address)
    expect(page.locator("#rows li").first).to_be_visible(timeout=60_000)
    expect(page.locator("#plan-list li").first).to_be_visible(timeout=60_000)
    if not page.locator("#fleet.by-domain").count():
        expect(page.locator("#rows .decides").first).to_be_visible(timeout=60_000)
    page.screenshot(path=file, full_page=size == "desktop")
    context.close()


def main(folder: Path) -> None:
    """Record both fleets, and take all pictures."""
    jars.fetch()
    work = Path(tempfile.mkdtemp(dir=folder))
    with (
        RedisServer(work / "redis") as redis,
        KafkaServer(work / "kafka") as kafka,
        Redis.from_url(redis.url, protocol=2) as client,
    ):
        ensure_topics(kafka.bootstrap)
        renewed = {
            cluster: record(kafka.bootstrap, client, cluster, brokers, bundles)
            for cluster, brokers, bundles in FLEETS
        }
        config = JobConfig(
            kafka=KafkaConfig(bootstrap=kafka.bootstrap), redis_url=SecretStr(redis.url)
        )
        with ControlPlane(config) as plane, sync_playwright() as play:
            served = Served(create_app(Context(plane)))
            browser = play.chromium.launch(
                executable_path="/usr/bin/chromium", args=["--no-sandbox"]
            )
            for (cluster, *_), theme, size in product(FLEETS, ("light", "dark"), SIZES):
                renewed[cluster]()
                file = folder / f"page-{cluster}-{theme}-{size}.png"
                take(browser, f"{served.url}#cluster={cluster}", file, theme, size)
            browser.close()
            served.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
