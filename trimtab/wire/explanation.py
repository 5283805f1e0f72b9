"""Why a bundle moved or stayed, or a broker gave or got: what Redis keeps for `trimtab why`."""

from __future__ import annotations

import msgspec

Value = bool | int | float | str


class Nearest(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One setting that alone would change the answer, and the value nearest to the present one
    that does."""

    setting: str
    now: Value
    then: Value
    so_that: str
    """What is otherwise then."""


class Option(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A broker that a bundle could go to."""

    broker: str
    usage: float | None = None
    """Predicted with the bundle on it, before the rest of the plan (fraction)."""
    bar: str = ""
    """What forbids it; empty where nothing does."""
    chosen: bool = False


class Explanation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """Of one bundle or broker in one round."""

    cluster: str
    round: int
    at: int
    """Batch timestamp (epoch ms)."""
    subject: str
    strategy: str
    verdict: str
    """`trimtab.explaining.verdict.Verdict`."""
    rule: str
    """What bound: a `Reason` where something was done, else a `Rule` or a `Rest`."""
    why: str
    """The same in a sentence or two."""
    source: str | None = None
    destination: str | None = None
    usage: dict[str, tuple[float, float]] = {}
    """Broker to its predicted usage before and after the plan (fractions)."""
    range: tuple[float, float] | None = None
    """Of the available brokers' predicted usage, before and after the plan (fractions)."""
    figures: dict[str, float] = {}
    """What was compared, by name: usage and ranges as fractions."""
    options: tuple[Option, ...] = ()
    """Of a bundle: the best few, and the broker that has it."""
    nearest: Nearest | None = None
    """None where no single setting would change the answer, or none is known."""
    until: int = 0
    """When what binds ends by itself (batch timestamp); 0: not by itself."""
    v: int = 1


class RoundExplanations(msgspec.Struct, frozen=True, kw_only=True):
    """What a round's subjects are told, from operator ② to the sinks."""

    cluster: str
    round: int
    at: int
    keep: int
    """How many rounds are kept."""
    subjects: dict[str, Explanation]
    problem: str = ""
    """Why there are none."""


class StoredExplanations(msgspec.Struct, frozen=True, kw_only=True):
    """The same with each explanation as the bytes that are stored."""

    cluster: str
    round: int
    at: int
    keep: int
    subjects: dict[str, msgspec.Raw]
    problem: str = ""


def complete_explanation(explanation: Explanation, **members: object) -> Explanation:
    """The explanation with these members."""
    return msgspec.structs.replace(explanation, **members)
