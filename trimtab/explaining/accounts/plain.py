"""The account of a strategy without one of its own: its reason, and the figures that it brings."""

from __future__ import annotations

from trimtab.explaining.accounts.cause import Cause
from trimtab.explaining.scene import Scene
from trimtab.reasons import Rest
from trimtab.shedding import STRATEGIES


class PlainAccount:
    """The account without figures; rows are those of `Scene.seen`."""

    fleet = None

    def __init__(self, scene: Scene) -> None:
        self._scene, self._view = scene, scene.seen
        self._name = scene.settings.round.shedding

    def moved(self, bundle: int) -> Cause:
        """The reason given by the strategy."""
        reason = self._scene.moves[self._view.bundles.names[bundle]].reason
        return self._cause(reason, f"{self._name} wants it gone: {reason}", self._owner(bundle))

    def stayed(self, bundle: int) -> Cause:
        why = f"{self._name} does not want it moved"
        return self._cause(Rest.NOT_CHOSEN, why, self._owner(bundle))

    def broker(self, broker: int) -> Cause:
        given = self._scene.given.get(self._view.brokers.names[broker], ())
        if not given:
            return self._cause(Rest.UNNEEDED, f"{self._name} takes nothing off it", broker)
        reason = self._scene.moves[given[0]].reason
        return self._cause(reason, f"{self._name} takes bundles off it: {reason}", broker)

    def _owner(self, bundle: int) -> int:
        return int(self._view.bundles.owner[bundle])

    def _cause(self, rule: str, why: str, broker: int) -> Cause:
        strategy = STRATEGIES[self._name]
        if strategy.figures is not None:
            history = self._scene.before.histories.of(self._name, strategy.history)
            why += f"; {strategy.figures(self._view, history, self._scene.settings, broker)}"
        return Cause(rule, why)
