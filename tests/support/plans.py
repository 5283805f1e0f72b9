"""A skewed cluster whose changes wait for a person, and the kept plans that a batch tells of."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from tests.support.clusters_by_rows import change_row, cluster, said, skewed
from tests.support.fleets import EIGHTHS
from trimtab.cluster.operator import Cluster
from trimtab.controls import Mode
from trimtab.kept_plans.kept_plan import Effect, KeptPlan, Step, StepKind
from trimtab.kept_plans.life import PlanState
from trimtab.wire.intent import IntentKind
from trimtab.wire.rows import Row, Tag

FIRST_ROUND = 61_000


def waiting_cluster(mode: str = "approve", **settings: object) -> Cluster:
    """Broker a:1 is hot and has all of EIGHTHS; AvgShedder wants the first four on b:1. Its first
    round is at FIRST_ROUND."""
    named = {name.replace("__", "."): value for name, value in settings.items()}
    it = cluster({"plans.mode": mode, "round.interval": 60.0} | named)
    it.take(skewed(EIGHTHS), 1000)
    return it


def proposed(it: Cluster, now_ms: int = FIRST_ROUND) -> KeptPlan:
    """The plan that the round at ``now_ms`` keeps."""
    [plan] = plans_in(it.wake(now_ms)[0])
    return plan


def plan_for(cluster: str, name: str, at: int = 1) -> KeptPlan:
    """A plan of one move that waits."""
    step = Step(StepKind.MOVE, EIGHTHS[0], "a:1", "b:1")
    effect = Effect(1, ("a:1", "b:1"))
    return KeptPlan(name, cluster, PlanState.PROPOSED, Mode.APPROVE, (step,), effect, at, 10**12)


def plans_in(rows: Iterable[Row]) -> list[KeptPlan]:
    """The kept plans among what a batch gave to the sinks."""
    return [msgspec.json.decode(r.payload, type=KeptPlan) for r in rows if r.tag == Tag.PLAN]


def verb(kind: IntentKind, plan: KeptPlan | str, name: str = "v", by: str = "ann") -> Row:
    return said(kind, id=name, plan=plan if isinstance(plan, str) else plan.id, by=by)


def landed(plan: KeptPlan, counter: int = 5) -> list[Row]:
    """The journal's rows after all of a plan's moves."""
    return [change_row(step.bundle, step.destination, counter) for step in plan.steps]
