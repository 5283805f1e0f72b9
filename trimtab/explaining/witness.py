"""One round with what its strategy compared and predicted, worked out once for all who ask."""

from __future__ import annotations

from functools import cached_property

from trimtab.explaining.accounts import Account, account_of
from trimtab.explaining.prediction import Prediction
from trimtab.explaining.scene import Scene
from trimtab.explaining.verdict import Verdict
from trimtab.explaining.words import change, points, short
from trimtab.wire.explanation import Explanation


class Witness:
    """Of one scene."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self._changes: dict[str, str] = {}

    @cached_property
    def account(self) -> Account | None:
        """None where the strategy was not asked."""
        if not self.scene.asked:
            return None
        return account_of(self.scene)

    @cached_property
    def prediction(self) -> Prediction | None:
        """None where nothing can be computed."""
        if not self.scene.computable:
            return None
        return Prediction(self.scene, self.account.fleet if self.account else None)

    @cached_property
    def range(self) -> tuple[float, float] | None:
        """Of the available brokers, before and after the plan."""
        prediction = self.prediction
        if prediction is None:
            return None
        before, after = prediction.range(prediction.before), prediction.range(prediction.after)
        return short(before), short(after)

    def usage(self, broker: str) -> tuple[float, float] | None:
        """Before and after the plan; None for a broker that is not in the view."""
        row = self.scene.broker_rows.get(broker)
        if self.prediction is None or row is None:
            return None
        return short(self.prediction.before[row]), short(self.prediction.after[row])

    def traded(self, source: str, destination: str) -> str:
        """What the plan does to two brokers and to the range; empty where nothing is known."""
        if self.range is None:
            return ""
        ends = f"source {self._change(source)}, destination {self._change(destination)}"
        before, after = self.range
        return f"{ends}, range {100 * before:.1f} -> {points(after)}"

    def _change(self, broker: str) -> str:
        told = self._changes.get(broker)
        if told is None:
            both = self.usage(broker)
            told = self._changes[broker] = "unknown" if both is None else change(*both)
        return told

    def blank(self, subject: str, verdict: Verdict) -> Explanation:
        """What is the same for every subject."""
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
