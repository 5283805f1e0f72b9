"""The account of OverloadShedder: whether a broker is at the limit."""

from __future__ import annotations

from trimtab.explaining.accounts.line import Line, LineAccount
from trimtab.explaining.scene import Scene
from trimtab.explaining.words import percent
from trimtab.load import usage
from trimtab.reasons import Reason


class OverloadAccount(LineAccount):
    """The account of the strategy ``overload``."""

    def __init__(self, scene: Scene) -> None:
        limit = scene.settings.round.overloaded_threshold
        line = Line(
            excess=usage(scene.seen.brokers.resources, scene.settings.weights),
            at=limit,
            path="round.overloaded_threshold",
            reason=Reason.OVERLOADED,
            says=lambda broker, used: (
                f"{broker} uses {percent(used)}, and sheds from {percent(limit)} on"
            ),
        )
        super().__init__(scene, line)
