"""Why a bundle moved or stayed, or a broker gave or got one: kept in Redis for `trimtab why`."""

from __future__ import annotations

import msgspec

Value = bool | int | float | str


class Nearest(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A setting that alone would change the answer, with the nearest value that does."""

    setting: str
    now: Value
    then: Value
    so_that: str
    """What that value would change."""


class Option(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A possible destination of a bundle."""

    broker: str
    usage: float | None = None
    """The broker's predicted usage with the bundle, before the rest of the plan (fraction)."""
    bar: str = ""
    """The rule that forbids this destination; empty if none does."""
    chosen: bool = False


class Explanation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """The explanation of one bundle or broker in one round."""

    cluster: str
    round: int
    at: int
    """Batch timestamp (epoch ms)."""
    subject: str
    strategy: str
    verdict: str
    """`trimtab.explaining.verdict.Verdict`."""
    rule: str
    """The rule that decided: a `Reason` if something was done, otherwise a `Rule` or a `Rest`."""
    why: str
    """The rule in one or two sentences, with its figures."""
    source: str | None = None
    destination: str | None = None
    usage: dict[str, tuple[float, float]] = {}
    """By broker: its predicted usage before and after the plan (fractions)."""
    range: tuple[float, float] | None = None
    """Range of the available brokers' predicted usage, before and after the plan (fractions)."""
    figures: dict[str, float] = {}
    """The figures that were compared, by name; usage and ranges are fractions."""
    options: tuple[Option, ...] = ()
    """For a bundle: the best few destinations, and the broker that has the bundle."""
    nearest: Nearest | None = None
    """The setting that would change the answer; None if no single setting would, or none is
    known."""
    until: int = 0
    """When the rule ends by itself (batch timestamp); 0: it does not end by itself."""
    advice: str = ""
    """What an operator should do if neither a move nor a split helps the bundle."""
    v: int = 1


class RoundExplanations(msgspec.Struct, frozen=True, kw_only=True):
    """The explanations of one round, from operator ② to the sinks."""

    cluster: str
    round: int
    at: int
    keep: int
    """How many rounds are kept."""
    subjects: dict[str, Explanation]
    problem: str = ""
    """Why there are no explanations."""


class StoredExplanations(msgspec.Struct, frozen=True, kw_only=True):
    """RoundExplanations with each explanation as its stored bytes."""

    cluster: str
    round: int
    at: int
    keep: int
    subjects: dict[str, msgspec.Raw]
    problem: str = ""


def complete_explanation(explanation: Explanation, **members: object) -> Explanation:
    """The explanation with ``members`` replaced."""
    return msgspec.structs.replace(explanation, **members)
