"""How long it takes from an operator's intent to its effect at the broker, in triggers of the job.

A hundred brokers with twenty bundles each report every second. All are equally busy, so nothing
moves by itself. The job starts a batch every second. In the first two minutes the JVM compiles and
the job catches up. After that an operator asks a hundred times, at irregular moments, to unload one
bundle, through the control plane that the API and the command line use. The time starts with the
call and ends when the broker's agent has read its command. All clocks are this machine's. Kafka,
Redis, the job and the hundred agents share its cores.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from statistics import median
from typing import Final

import numpy as np

from benchmarks.figures import Bar, Figure, Limit, figure
from benchmarks.fleet import BROKERS, BUNDLES, CLUSTER, StepFleet, wall_ms
from benchmarks.scene import PATIENCE, balanced, fleet_on_stack
from control.intents import new_intent
from control.plane import ControlPlane
from deploy.stack import Stack
from streaming.config import JobConfig
from trimtab.wire.intent import IntentKind

TRIGGER_S: Final = 1.0
INTENTS: Final = 100
WARM_UP_S: Final = 120.0


def measure(folder: Path) -> list[Figure]:
    """Ask again and again while the job runs."""
    with (
        fleet_on_stack(folder) as (stack, fleet),
        balanced(stack, fleet, folder, TRIGGER_S),
        ControlPlane(_settings(stack)) as plane,
    ):
        time.sleep(WARM_UP_S)
        took = list(_took(fleet, plane))
    answered = [each for each in took if each is not None]
    load = f"{BROKERS} brokers, {BUNDLES} bundles each, a report a second"
    ratio = float(np.percentile(answered, 99)) / TRIGGER_S
    return [
        figure("intents.p50", median(answered), "s", f"intent to command, {load}"),
        figure(
            "intents.p99_ratio",
            ratio,
            "triggers",
            f"p99 of {len(answered)} intents as a multiple of the job's trigger of {TRIGGER_S:g} s",
            Bar(Limit.AT_MOST, 3.0),
            {"s": answered},
        ),
        figure(
            "intents.unanswered",
            len(took) - len(answered),
            "intents",
            "intents without a command",
            Bar(Limit.AT_MOST, 0),
        ),
    ]


def _settings(stack: Stack) -> JobConfig:
    return JobConfig.model_validate(
        {"redis_url": stack.redis_url, "kafka": {"bootstrap": stack.kafka_bootstrap}}
    )


def _took(fleet: StepFleet, plane: ControlPlane) -> Iterator[float | None]:
    """Seconds until each command, one broker after another; None where none came."""
    rng = np.random.default_rng(1)
    for number in range(INTENTS):
        name = list(fleet.brokers)[number % BROKERS]
        bundle = min(fleet.brokers[name].bundles())
        intent = new_intent(IntentKind.UNLOAD, CLUSTER, bundle=bundle)
        asked = wall_ms()
        receipt = fleet.told(name, partial(plane.send, intent), PATIENCE)
        of_it = receipt and receipt.command.bundle == bundle
        yield (receipt.at_ms - asked) / 1000 if receipt and of_it else None
        time.sleep(float(rng.uniform(0.3, 1.3)))
