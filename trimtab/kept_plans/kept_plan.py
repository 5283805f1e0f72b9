"""A kept plan: its steps, what it is predicted to do, and how far it has come."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any
from zlib import crc32

from trimtab.controls import Mode
from trimtab.kept_plans.life import TRANSITIONS, PlanEvent, PlanState


class StepKind(StrEnum):
    """What a step changes."""

    MOVE = "move"
    """``bundle`` goes from ``source`` to ``destination``."""
    SPLIT = "split"
    """``source`` splits ``bundle``."""
    MERGE = "merge"
    """``source`` merges ``bundle`` with ``neighbour``, the one above."""
    DRAIN = "drain"
    """``source`` is emptied, and stays in need of no bundle until it is used again."""
    RESTART = "restart"
    """``source`` is emptied, restarted by a person, and used again."""


class StepState(StrEnum):
    """How far a step has come."""

    WAITING = "waiting"
    BEGUN = "begun"
    EMPTY = "empty"
    """The broker has no bundle left, and may be restarted."""
    DONE = "done"
    SKIPPED = "skipped"
    """It is not carried out; ``rule`` says why."""


FINAL = frozenset({StepState.DONE, StepState.SKIPPED})


@dataclass(frozen=True, slots=True)
class Step:
    """One change of a plan; a member that its kind does not need is empty."""

    kind: StepKind
    bundle: str = ""
    source: str = ""
    destination: str = ""
    neighbour: str = ""
    reason: str = ""
    """Why the strategy wants it (`trimtab.reasons.Reason`)."""
    algorithm: str = ""
    """How it is split; empty: as the settings say."""
    positions: tuple[int, ...] = ()
    state: StepState = StepState.WAITING
    rule: str = ""
    """The rule by which it was skipped."""
    began: int = 0
    """The round's time (ms) that granted it."""

    @property
    def subject(self) -> str:
        """The bundle or the broker that it changes."""
        return self.bundle or self.source

    def asked(self) -> Step:
        """The step as it was proposed."""
        return replace(self, state=StepState.WAITING, rule="", began=0)


@dataclass(frozen=True, slots=True)
class Effect:
    """What a plan is predicted to do."""

    handovers: int
    """How many bundles change their broker."""
    brokers: tuple[str, ...] = ()
    """All that give or get a bundle, or have one split or merged."""
    load: float = 0.0
    """Bytes/s that change their broker, with messages counted as bytes."""
    before: float | None = None
    """The range of usage (fraction) without the plan; None if it is not known."""
    after: float | None = None
    """The range with the plan."""
    seconds: float = 0.0
    """How long it takes at the recent pace of hand-overs; without the time of restarts."""


@dataclass(frozen=True, slots=True)
class KeptPlan:
    """One plan; replaced, never changed. Times are batch timestamps (epoch ms)."""

    id: str
    cluster: str
    state: PlanState
    mode: Mode
    """``approve``: nothing newer is proposed while it waits."""
    steps: tuple[Step, ...]
    effect: Effect
    at: int
    """When it was made."""
    until: int
    """What has not begun by then expires."""
    origin: str = ""
    """``round 128``, ``undo of ID``, or the intent that asked for it."""
    by: str = ""
    """Who approved, rejected or cancelled it."""
    cut: int = 0
    """How many more changes the round wanted than a plan may hold."""
    v: int = 1

    def after(self, event: PlanEvent, **changes: Any) -> KeptPlan:
        """The plan after a legal event."""
        return replace(self, state=TRANSITIONS[self.state][event], **changes)

    def with_steps(self, change: Callable[[Step], Step]) -> KeptPlan:
        """The plan with each step changed; the plan itself if none is."""
        steps = tuple(map(change, self.steps))
        return self if steps == self.steps else replace(self, steps=steps)

    def asks_the_same(self, other: KeptPlan) -> bool:
        """Whether both would change the same."""
        mine, others = ([step.asked() for step in plan.steps] for plan in (self, other))
        return mine == others


def drain_plan_id(intent: str) -> str:
    """The id of the plan that an intent asks for, which the asker knows before it is made."""
    return f"drain-{crc32(intent.encode()):08x}"


def undo_id(plan: str) -> str:
    """The id of the plan that takes another one back: a plan is undone once."""
    return f"{plan}-undo"
