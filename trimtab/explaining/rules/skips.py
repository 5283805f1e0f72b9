"""Explains in a sentence each rule by which a round skips its strategy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from trimtab.arrays import Floats
from trimtab.doubt import Doubt
from trimtab.explaining.accounts.cause import Cause
from trimtab.explaining.nearest import (
    closest,
    find_setting,
    switch_setting,
)
from trimtab.explaining.scene import Scene
from trimtab.explaining.words import seconds
from trimtab.health.assessment import suspicions
from trimtab.reasons import Rule
from trimtab.settings import Settings
from trimtab.view import View
from trimtab.wire.explanation import Nearest


def explain_skip(scene: Scene, rule: Rule) -> Cause:
    """The cause for a round that asked no strategy."""
    told = SKIPPED[rule](scene) if rule in SKIPPED else rule.value
    return Cause(rule, f"no strategy was asked: {told}") if isinstance(told, str) else told


def resume(cluster: str) -> str:
    """The command by which an operator ends a pause or a freeze."""
    return f"`trimtab resume --cluster {cluster} --execute`"


def find_uncomputable(view: View) -> str:
    """The broker whose report has the largest number, or a NaN or infinity."""
    brokers, bundles = view.brokers, view.bundles
    worst = _greatest(brokers.resources, brokers.traffic, brokers.limits)
    carried = _greatest(bundles.short, bundles.long, bundles.stats)
    np.maximum.at(worst, bundles.owner, carried)
    return brokers.names[int(np.argmax(worst))]


def _greatest(*columns: Floats) -> Floats:
    """(n,) greatest magnitude in each column of the (k, n) arrays."""
    rows = np.abs(np.concatenate(columns))
    greatest: Floats = np.where(np.isnan(rows), np.inf, rows).max(axis=0)
    return greatest


def _paused(scene: Scene) -> str:
    return f"the cluster is paused until {resume(scene.view.cluster)}"


def _uncomputable(scene: Scene) -> str:
    broker = find_uncomputable(scene.view)
    return f"what {broker} reports cannot be computed with; next: look at its load report"


def _disabled(scene: Scene) -> Cause:
    settings, frozen = scene.settings, scene.plan.review.frozen
    # While an earlier plan's harm forbids it too, no single setting has the strategy asked.
    nearest = switch_setting(settings, "round.enabled", True, "the strategy is asked")
    merging = settings.split.enabled and settings.merge.enabled
    goes_on = "splits and merges go on" if merging else "splits go on"
    if not settings.split.enabled:
        goes_on = "so are splits and merges (split.enabled)"
    return Cause(
        Rule.DISABLED,
        f"no strategy was asked to move bundles: shedding is off (round.enabled); {goes_on}",
        None if frozen else nearest,
    )


def _frozen(scene: Scene) -> Cause:
    breaker = scene.after.breaker
    left = seconds((breaker.until_ms - scene.now_ms) / 1000)
    return Cause(
        Rule.FROZEN,
        f"no strategy is asked for another {left}, or until {resume(scene.view.cluster)}: "
        f"{'; '.join(breaker.found)}",
        switch_setting(scene.settings, "breaker.enabled", False, "the freeze ends"),
        until=breaker.until_ms,
    )


def _doubt(scene: Scene) -> Cause:
    doubts = scene.situation.doubts
    causes = [f"{cause} ({level})" for cause, level in doubts.items() if level is not Doubt.STABLE]
    why = f"nothing is believed enough to balance by it: {', '.join(sorted(causes))}"
    return Cause(Rule.DOUBT, why, _believing(scene))


def _believing(scene: Scene) -> Nearest | None:
    memory, now_ms = scene.memory, scene.now_ms
    if any(level is not Doubt.STABLE for level in memory.doubts.values()):
        return None

    def believed(settings: Settings) -> bool:
        levels = suspicions(memory, scene.view.records, settings, now_ms).values()
        return all(level is Doubt.STABLE for level in levels)

    so_that = "the strategy is asked"
    return closest(
        find_setting(scene.settings, "doubt.silent_brokers", True, believed, so_that),
        find_setting(scene.settings, "doubt.lost_brokers", True, believed, so_that),
    )


SKIPPED: Final[Mapping[Rule, Callable[[Scene], Cause | str]]] = {
    Rule.DOUBT: _doubt,
    Rule.FROZEN: _frozen,
    Rule.PAUSED: _paused,
    Rule.UNCOMPUTABLE: _uncomputable,
    Rule.DISABLED: _disabled,
    Rule.TOO_FEW_BROKERS: lambda _: "fewer than two brokers may get bundles",
    Rule.AWAITING_OUTCOME: lambda _: (
        "a plan missed its forecast, so the next one waits until the outcome of the last is known"
    ),
    Rule.REPAIR_ONLY: lambda _: "this round was held between two others, to repair and to drain",
}
"""The sentence for a skipped round, by its rule. Of a round that asked its strategy and got no
proposal, accounts say more."""
