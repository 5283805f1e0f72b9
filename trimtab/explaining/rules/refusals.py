"""Explains in a sentence each rule by which a round refuses a wish."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from trimtab.explaining.accounts.cause import Cause
from trimtab.explaining.nearest import (
    lower_setting,
    raise_setting,
)
from trimtab.explaining.rules.controls import explain_pin
from trimtab.explaining.scene import Scene
from trimtab.explaining.words import format_count, seconds
from trimtab.model import namespace_of
from trimtab.plan import Refusal
from trimtab.reasons import Rule
from trimtab.round.allowance import budget
from trimtab.state.hand_overs import tenant_of


def explain_refusal(scene: Scene, refusal: Refusal) -> Cause:
    """The cause for a wish that was refused."""
    tell = REFUSED.get(refusal.rule)
    told = tell(scene, refusal) if tell else refusal.rule.value
    return Cause(refusal.rule, told) if isinstance(told, str) else told


def cooling(scene: Scene, bundle: str) -> Cause:
    """The cause for a bundle that a round moved or split a short time ago."""
    settings, moved_ms = scene.settings, scene.before.recent[bundle]
    ago = (scene.now_ms - moved_ms) / 1000
    grace = settings.round.grace_period
    return Cause(
        Rule.COOLING_DOWN,
        f"a round moved or split it {seconds(ago)} ago, and it rests for {seconds(grace)}",
        lower_setting(settings, "round.grace_period", ago, "it may move again"),
        {"ago": ago, "grace_period": grace},
        # It still stays in the millisecond in which the period ends.
        until=moved_ms + round(grace * 1000) + 1,
    )


def _cooling(scene: Scene, refusal: Refusal) -> Cause:
    return cooling(scene, refusal.bundle)


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


REFUSED: Final[Mapping[Rule, Callable[[Scene, Refusal], Cause | str]]] = {
    Rule.COOLING_DOWN: _cooling,
    Rule.FULL_NAMESPACE: _full,
    Rule.BUDGET: _budget,
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
    Rule.PINNED: lambda scene, each: explain_pin(scene, each.bundle).why,
    Rule.MINUTE_BUDGET: lambda *_: (
        "the last minute's rounds have moved as much as plans.minute_moves allows"
    ),
    Rule.BROKER_BUDGET: lambda *_: (
        "the round has moved as much off or to a broker as plans.broker_moves allows"
    ),
    Rule.TENANT_BUDGET: lambda scene, each: (
        f"the bundles of {tenant_of(each.bundle)} have moved as often in the last "
        f"{seconds(scene.settings.plans.tenant_period)} as its budget allows"
    ),
    Rule.NO_CANDIDATE: lambda *_: "no other broker may get bundles",
    Rule.UNDIVIDABLE: lambda *_: (
        "it alone keeps the brokers too far apart, and cannot be split: it is one topic, or of "
        "the least range, or splitting it did not help. A larger broker would carry it"
    ),
}
"""The sentence for a refusal, by its rule."""
