"""One round with its strategy's account and prediction, computed once for all explanations."""

from __future__ import annotations

from functools import cached_property

from trimtab.explaining.accounts import Account, account_of
from trimtab.explaining.prediction import Prediction
from trimtab.explaining.scene import Scene
from trimtab.explaining.verdict import Verdict
from trimtab.explaining.words import change, points, short
from trimtab.wire.explanation import Explanation


class Witness:
    """The witness of one scene."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self._changes: dict[str, str] = {}

    @cached_property
    def account(self) -> Account | None:
        """The strategy's account; None if the strategy was not asked."""
        if not self.scene.asked:
            return None
        return account_of(self.scene)

    @cached_property
    def prediction(self) -> Prediction | None:
        """The round's prediction; None if nothing can be computed."""
        if not self.scene.computable:
            return None
        return Prediction(self.scene, self.account.fleet if self.account else None)

    @cached_property
    def range(self) -> tuple[float, float] | None:
        """The available brokers' usage range, before and after the plan."""
        prediction = self.prediction
        if prediction is None:
            return None
        before, after = prediction.range(prediction.before), prediction.range(prediction.after)
        return short(before), short(after)

    def usage(self, broker: str) -> tuple[float, float] | None:
        """A broker's usage before and after the plan; None if it is not in the view."""
        row = self.scene.broker_rows.get(broker)
        if self.prediction is None or row is None:
            return None
        return short(self.prediction.before[row]), short(self.prediction.after[row])

    def traded(self, source: str, destination: str) -> str:
        """The plan's effect on two brokers and on the range; empty if nothing is known."""
        if self.range is None:
            return ""
        ends = f"source {self._change(source)}, destination {self._change(destination)}"
        before, after = self.range
        return f"{ends}, range {100 * before:.1f} -> {points(after)}"

    def _change(self, broker: str) -> str:
        text = self._changes.get(broker)
        if text is None:
            both = self.usage(broker)
            text = self._changes[broker] = "unknown" if both is None else change(*both)
        return text

    def blank(self, subject: str, verdict: Verdict) -> Explanation:
        """An explanation with only the fields that are equal for every subject."""
        scene = self.scene
        return Explanation(
            cluster=scene.view.cluster,
            round=scene.number,
            at=scene.now_ms,
            subject=subject,
            strategy=scene.settings.round.shedding,
            verdict=verdict,
            rule="",
            why="",
            range=self.range,
        )
