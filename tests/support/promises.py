"""What an explanation promises of a setting, looked for in the round held again with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from trimtab.explaining.scene import Scene
from trimtab.explaining.verdict import Verdict
from trimtab.reasons import Rest, Rule
from trimtab.wire.explanation import Explanation


class Retried(NamedTuple):
    """The round with the setting, and what it made of the subject."""

    scene: Scene
    told: Explanation

    @property
    def is_wanted(self) -> bool:
        return self.told.verdict in (Verdict.MOVED, Verdict.REFUSED)

    @property
    def acts(self) -> bool:
        """Whether the strategy wants something, or would if anything could go."""
        return self.scene.wanted or self.told.rule == Rest.NO_GAIN


KEPT: Final[Mapping[str, Callable[[Retried], bool]]] = {
    "this bundle stays": lambda it: not it.is_wanted,
    "this bundle goes": lambda it: it.is_wanted,
    "this bundle goes too": lambda it: it.is_wanted,
    "it sheds": lambda it: it.acts,
    "it sheds nothing": lambda it: it.told.subject not in it.scene.given,
    "its broker sheds": lambda it: it.acts,
    "its pair sheds": lambda it: it.acts or it.told.rule in (Rest.TOO_LARGE, Rest.ENOUGH),
    "its hits are enough": lambda it: it.told.rule not in (Rest.HITS, Rest.BELOW_LINE),
    "its pair is left alone": lambda it: not it.is_wanted,
    "the busiest broker sheds": lambda it: (
        it.acts or it.told.rule in (Rest.TOO_LARGE, Rest.ENOUGH, Rest.NOT_BUSIEST)
    ),
    "the round leaves all as it is": lambda it: not it.scene.balancing,
    "the round looks for a plan": lambda it: (
        it.told.rule not in (Rest.IN_RANGE, Rest.WITHIN_NOISE, Rest.SWINGING)
    ),
    "its policy no longer keeps it": lambda it: it.told.rule != Rest.UNDER_POLICY,
    "it acts in this round": lambda it: it.acts,
    "it is asked": lambda it: it.told.rule != Rest.WAITING,
    "the strategy is asked": lambda it: it.scene.asked,
    "the freeze ends": lambda it: it.told.rule != Rule.FROZEN,
    "it stays whole": lambda it: it.told.subject not in it.scene.splits,
    "both stay as they are": lambda it: it.told.subject not in it.scene.merges,
    "it is divided": lambda it: it.told.subject in it.scene.splits,
    "its turn comes in this round": lambda it: it.told.rule != Rule.BUDGET,
    "it may move again": lambda it: it.told.rule != Rule.COOLING_DOWN,
}


def is_kept(promise: str, retried: Retried) -> bool:
    """False also of a promise that is not in the list."""
    if promise.startswith("a hit counts"):
        return retried.told.rule == Rest.HITS or retried.acts
    check = KEPT.get(promise)
    return check is not None and check(retried)
