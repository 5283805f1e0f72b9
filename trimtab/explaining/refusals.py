"""Explains in a sentence each rule by which a round skips its strategy or refuses a wish."""

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
    lower_setting,
    raise_setting,
    switch_setting,
)
from trimtab.explaining.scene import Scene
from trimtab.explaining.words import format_count, seconds
from trimtab.health.assessment import suspicions
from trimtab.model import namespace_of
from trimtab.plan import Refusal
from trimtab.reasons import Rule
from trimtab.round.disposal import budget
from trimtab.settings import Settings
from trimtab.view import View
from trimtab.wire.explanation import Nearest

_SKIPPED: Final[Mapping[Rule, str]] = {
    Rule.TOO_FEW_BROKERS: "fewer than two brokers may get bundles",
    Rule.AWAITING_OUTCOME: "a plan missed its forecast, so the next one waits until the outcome of "
    "the last is known",
    Rule.REPAIR_ONLY: "this round was held between two others, to repair and to drain",
}


def explain_skip(scene: Scene, rule: Rule) -> Cause:
    """The cause for a round that asked no strategy."""
    if rule is Rule.DOUBT:
        return _doubt(scene)
    if rule is Rule.FROZEN:
        return _frozen(scene)
    if rule is Rule.PAUSED:
        end = resume(scene.view.cluster)
        return Cause(rule, f"no strategy was asked: the cluster is paused until {end}")
    if rule is Rule.UNCOMPUTABLE:
        broker = find_uncomputable(scene.view)
        why = f"no strategy was asked: what {broker} reports cannot be computed with"
        return Cause(rule, f"{why}; next: look at its load report")
    if rule is Rule.DISABLED:
        return _disabled(scene.settings, frozen=scene.plan.review.frozen)
    return Cause(rule, f"no strategy was asked: {_SKIPPED.get(rule, rule.value)}")


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


def _disabled(settings: Settings, *, frozen: bool) -> Cause:
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


def explain_refusal(scene: Scene, refusal: Refusal) -> Cause:
    """The cause for a wish that was refused."""
    if refusal.rule is Rule.COOLING_DOWN:
        return cooling(scene, refusal.bundle)
    if refusal.rule is Rule.FULL_NAMESPACE:
        return _full(scene, refusal)
    if refusal.rule is Rule.BUDGET:
        return _budget(scene, refusal)
    told = _REFUSED.get(refusal.rule)
    return Cause(refusal.rule, told(scene, refusal) if told else refusal.rule.value)


def cooling(scene: Scene, bundle: str) -> Cause:
    """The cause for a bundle that a round moved or split a short time ago."""
    settings, moved_ms = scene.settings, scene.before.recent[bundle]
    ago = (scene.now_ms - moved_ms) / 1000
    grace = settings.round.grace_period
    return Cause(
        Rule.COOLING_DOWN,
        f"a round moved or divided it {seconds(ago)} ago, and it rests for {seconds(grace)}",
        lower_setting(settings, "round.grace_period", ago, "it may move again"),
        {"ago": ago, "grace_period": grace},
        # It still stays in the millisecond in which the period ends.
        until=moved_ms + round(grace * 1000) + 1,
    )


def _budget(scene: Scene, refusal: Refusal) -> Cause:
    before = [each.bundle for each in scene.plan.refusals if each.rule is Rule.BUDGET]
    most = budget(scene.settings)
    place, granted = most + before.index(refusal.bundle) + 1, len(scene.plan.moves)
    spent = f"the round has moved the {format_count(most, 'bundle')} that it may"
    if granted < most:
        # For bundles that leave a draining broker, moves under way count too.
        spent = (
            f"{most - granted} of the {format_count(most, 'bundle')} that may move are under way"
        )
    return Cause(
        Rule.BUDGET,
        f"{spent}; this one was number {place}",
        raise_setting(scene.settings, "round.max_moves", place - 1, "its turn comes in this round"),
        {"max_moves": most, "place": place},
    )


def _full(scene: Scene, refusal: Refusal) -> Cause:
    namespace = namespace_of(refusal.bundle)
    size = scene.view.sizes.get(namespace, 0)
    coming = sum(
        max(1, len(split.positions))
        for split in scene.plan.splits
        if namespace_of(split.bundle) == namespace
    )
    path = "split.max_bundles"
    should = "it alone keeps the brokers too far apart and should be divided"
    if refusal.bundle in scene.before.asked:
        should = "an operator asked to split it"
        coming += max(1, len(scene.before.asked[refusal.bundle].positions)) - 1
    return Cause(
        Rule.FULL_NAMESPACE,
        f"{should}, but {namespace} has {format_count(size, 'bundle')} already ({path})",
        raise_setting(scene.settings, path, size + coming, "it is divided"),
        {"bundles": size},
    )


def _group(scene: Scene, refusal: Refusal) -> str:
    namespace = namespace_of(refusal.bundle)
    group = scene.view.policies.group_of(namespace)
    return (
        f"every broker it may go to has as much of the anti-affinity group {group} as "
        f"{refusal.source} has"
    )


def _policy(scene: Scene, refusal: Refusal) -> str:
    namespace = namespace_of(refusal.bundle)
    if scene.view.policies.isolation_of(namespace) is not None:
        return f"the isolation policy of {namespace} allows no other broker that is there"
    return f"isolation policies reserve all other brokers, and {namespace} is under none"


_REFUSED: Final[Mapping[Rule, Callable[[Scene, Refusal], str]]] = {
    Rule.TWICE: lambda *_: "it was wanted twice in one round, and moves once",
    Rule.IN_FLIGHT: lambda *_: "it is on its way already",
    Rule.OWNER_LOST: lambda _, each: (
        f"{each.source}, which has it, takes no part at present: lost, silent or being drained"
    ),
    Rule.UNREPORTED: lambda _, each: (
        f"{each.source} has got it, and has not reported it yet: ask again after its next report"
    ),
    Rule.NOT_MOVABLE: lambda *_: "it is not to be moved: a heartbeat's, or marked so in the view",
    Rule.UNOWNED: lambda _, each: (
        f"no record says that {each.source} owns it" if each.source else "no broker owns it"
    ),
    Rule.LAST_BUNDLE: lambda _, each: f"{each.source} would have no bundle left",
    Rule.SAME_BROKER: lambda _, each: f"no broker is better than {each.source}, which has it",
    Rule.ISOLATED: _policy,
    Rule.ANTI_AFFINITY: _group,
    Rule.UNFIT_DESTINATION: lambda _, each: (
        f"{each.destination}, which an operator asked for, is away or may not have it"
    ),
    Rule.NO_CANDIDATE: lambda *_: "no other broker may get bundles",
    Rule.UNDIVIDABLE: lambda *_: (
        "it alone keeps the brokers too far apart, and cannot be divided: it is one topic, or of "
        "the least range, or to divide it was in vain. A larger broker would carry it"
    ),
}
