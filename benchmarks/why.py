"""The cost of explanations: for the reader, for the round that is explained, and for Redis.

An answer is what `Explanations.read` returns when `trimtab why` calls it: it opens a connection,
makes two round trips and decodes one explanation. Redis runs on this machine and holds as many
rounds of as many subjects as the defaults allow, all of them explanations of a real plan. The
benchmark asks for every subject, one after the other. For comparison it measures two plain HGETs on
an open connection.

Operator 2 holds a round at 1,000 brokers with 100 bundles each and explains it: it makes a sentence
for every command, and encodes the explanations of the subjects concerned. Then the explaining alone
is repeated for the same round, and compared with the rest of the round. Both are medians of this
process's CPU time. The last figure is the time of the call with which Redis stores a round's
explanations and removes those of the oldest round, from the first encoded byte to the answer. Redis
itself is busy for about a fifth of it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import cycle, islice
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

import msgspec
import numpy as np
from redis import Redis

from benchmarks.figures import Bar, Figure, Limit, figure
from benchmarks.plans import acquainted, cpu_seconds
from benchmarks.synthetic import CLUSTER, NOW_MS, Columns, columns, holdings, snapshots
from deploy.redis_server import RedisServer
from sinks.redis.answers.explanations import Explanations
from sinks.redis.cluster_gate import ClusterGate
from sinks.redis.server.connections import redis_client
from trimtab.cluster.operator import Cluster
from trimtab.explaining.telling import explanations, whys
from trimtab.explaining.witness import Witness
from trimtab.intake.assemble import assemble
from trimtab.model import namespace_of
from trimtab.plan import Plan
from trimtab.settings import Settings
from trimtab.state.memory import Memory
from trimtab.state.round_state import RoundState
from trimtab.wire import keys
from trimtab.wire.columns import pack
from trimtab.wire.explanation import RoundExplanations, StoredExplanations
from trimtab.wire.ownership import Record

BROKERS: Final = 1_000
BUNDLES: Final = 100
"""Bundles of each broker."""
SEED: Final = 1
ROUNDS: Final = 5
ANSWERS: Final = 1_000
STRATEGIES: Final = ("threshold", "trimtab")
"""The default, and the planner, whose account looks again."""
GENERATION: Final = 1
ANSWER_MS: Final = 50.0
SHARE: Final = 0.2


class Explained(NamedTuple):
    """One round, the CPU seconds of all of it and of explaining it alone, and its explanations."""

    moves: int
    holding: list[float]
    explaining: list[float]
    told: RoundExplanations


def measure(folder: Path) -> list[Figure]:
    """Measure the round first, then store its explanations and ask for them."""
    rounds = {strategy: explained(strategy) for strategy in STRATEGIES}
    with RedisServer(folder) as server, redis_client(server.url) as client:
        written = fill(client, rounds["trimtab"].told)
        return [
            *answer_figures(server.url, client, rounds["trimtab"].told),
            *(round_figure(strategy, each) for strategy, each in rounds.items()),
            written,
        ]


def explained(strategy: str, brokers: int = BROKERS, bundles: int = BUNDLES) -> Explained:
    """Time rounds of the strategy, with all other settings at their defaults."""
    settings = Settings.parse({"round.shedding": strategy})
    made = columns(brokers, bundles, SEED)
    cluster = stored(made, settings)
    memory, told = cluster.memory, list[RoundExplanations]()

    def hold() -> None:
        cluster.memory = memory
        cluster.hold_round(NOW_MS)
        told.append(explain(cluster.witness))

    def explain_again() -> None:
        if cluster.witness is not None:
            explain(Witness(cluster.witness.scene))

    turns = [(cpu_seconds(hold), cpu_seconds(explain_again)) for _ in range(ROUNDS)]
    holding, explaining = (list(side) for side in zip(*turns, strict=True))
    plan = cluster.witness.scene.plan if cluster.witness is not None else Plan()
    if not plan.moves:
        raise RuntimeError(f"{strategy} planned nothing: {plan.skipped}")
    return Explained(len(plan.moves), holding, explaining, told[-1])


def stored(made: Columns, settings: Settings) -> Cluster:
    """The state of operator ② before a round, with reports that have just come."""
    reports, held = snapshots(made), holdings(made)
    view = replace(assemble(CLUSTER, reports, held)[0], now_ms=NOW_MS)
    # What the round before wants does not happen here, so it is only shown.
    looking = settings.changed({"round.observe_only": True})
    state = acquainted(view, RoundState(), looking)
    records: dict[str, dict[str, Record]] = {}
    for bundle, record in held.records.items():
        records.setdefault(namespace_of(bundle), {})[bundle] = record
    return Cluster(
        CLUSTER,
        {report.broker: pack(report) for report in reports},
        {namespace: pack(each) for namespace, each in records.items()},
        Memory(round=state, appended=dict.fromkeys(made.brokers, NOW_MS)),
        settings,
    )


def explain(witness: Witness | None) -> RoundExplanations:
    """Explain the round and encode the result, as the job does."""
    if witness is None:
        raise RuntimeError("no round was held")
    said, told = whys(witness), explanations(witness)
    if told is None or told.problem or said.problems:
        raise RuntimeError(f"a round was not explained: {said.problems or told}")
    msgspec.json.encode(told)
    return told


def fill(client: Redis, told: RoundExplanations) -> Figure:
    """Fill the store with as many rounds as it keeps; then time each further one."""
    gate = ClusterGate(client)
    closure = gate.open(CLUSTER, GENERATION)
    if closure is not None:
        gate.open(CLUSTER, GENERATION, closure.history)
    kept, taken = Explanations(client), []
    for number in range(1, told.keep + ROUNDS + 1):
        stored = as_stored(told, number)
        started = time.perf_counter()
        kept.write(GENERATION, stored)
        taken.append(1000 * (time.perf_counter() - started))
    held = client.memory_usage(keys.explanations_key(CLUSTER, told.keep)) or 0
    return figure(
        "why.write",
        median(taken[-ROUNDS:]),
        "ms",
        f"Redis stores a round's {len(told.subjects)} explanations, {held / 1024:,.0f} KiB, and "
        "removes as many",
        raw={"ms": taken[-ROUNDS:]},
    )


def as_stored(told: RoundExplanations, number: int) -> StoredExplanations:
    """The explanations as the sink gets them, numbered as a round a minute later."""
    subjects = {
        name: msgspec.structs.replace(each, round=number) for name, each in told.subjects.items()
    }
    again = msgspec.structs.replace(
        told, round=number, at=NOW_MS + 60_000 * number, subjects=subjects
    )
    return msgspec.json.decode(msgspec.json.encode(again), type=StoredExplanations)


def answer_figures(url: str, client: Redis, told: RoundExplanations) -> Iterator[Figure]:
    """The figures of an answer from a full store."""
    kept, rounds = Explanations(client), client.zcard(keys.explained_key(CLUSTER))
    key = keys.explanations_key(CLUSTER, told.keep + ROUNDS)

    def bare(subject: str) -> None:
        client.hget(key, subject)
        client.hget(key, subject)

    def alone(subject: str) -> None:
        with redis_client(url) as own:
            if Explanations(own).read(CLUSTER, subject).explanation is None:
                raise RuntimeError(f"nothing was found of {subject}")

    sides = (bare, lambda subject: kept.read(CLUSTER, subject), alone)
    subjects = islice(cycle(told.subjects), ANSWERS)
    turns = [[milliseconds(side, subject) for side in sides] for subject in subjects]
    hgets, answers, alones = (list(side) for side in zip(*turns, strict=True))
    yield figure(
        "why.answer",
        worst(alones),
        "ms",
        f"p99 of {len(alones):,}, including the connection, from {rounds} rounds of "
        f"{len(told.subjects)} subjects; median {median(alones):.2f} ms",
        Bar(Limit.AT_MOST, ANSWER_MS),
        quantiles(alones),
    )
    yield figure(
        "why.answer_ratio",
        median(answers) / median(hgets),
        "of two HGETs",
        f"on an open connection: median {median(answers):.2f} ms, p99 {worst(answers):.2f} ms",
        raw=quantiles(answers) | {f"HGETs {n}": v for n, v in quantiles(hgets).items()},
    )


def round_figure(strategy: str, each: Explained) -> Figure:
    """How much longer a round is for being explained."""
    explaining = median(each.explaining)
    rest = median(each.holding) - explaining
    return figure(
        f"why.{strategy}_share",
        explaining / rest,
        "of the round",
        f"{1000 * explaining:,.0f} ms for {each.moves:,} commands and {len(each.told.subjects)} "
        f"subjects, the rest of the round {1000 * rest:,.0f} ms",
        Bar(Limit.AT_MOST, SHARE),
        {"explaining CPU s": each.explaining, "all of it CPU s": each.holding},
    )


def milliseconds(side: Callable[[str], object], subject: str) -> float:
    """The milliseconds that one call takes."""
    started = time.perf_counter()
    side(subject)
    return 1000 * (time.perf_counter() - started)


def worst(taken: Sequence[float]) -> float:
    """The 99th percentile."""
    return float(np.quantile(taken, 0.99))


def quantiles(taken: Sequence[float]) -> dict[str, list[float]]:
    """Median, 90th and 99th percentile, and the longest: a thousand figures are no use."""
    return {"p50 p90 p99 max ms": np.quantile(taken, [0.5, 0.9, 0.99, 1.0]).tolist()}
