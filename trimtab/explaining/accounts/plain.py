"""The account of a strategy without its own: what it wanted, without figures."""

from __future__ import annotations

from trimtab.explaining.accounts.cause import Cause
from trimtab.explaining.scene import Scene
from trimtab.reasons import Reason, Rest


class PlainAccount:
    """The account without figures; rows are those of `Scene.seen`."""

    fleet = None

    def __init__(self, scene: Scene) -> None:
        self._scene, self._view = scene, scene.seen
        self._strategy = scene.settings.round.shedding

    def moved(self, bundle: int) -> Cause:
        """The reason given by the strategy."""
        reason = self._scene.moves[self._view.bundles.names[bundle]].reason
        return Cause(reason, f"{self._strategy} wants it gone: {reason}")

    def stayed(self, bundle: int) -> Cause:  # noqa: ARG002 - the contract of an account
        return Cause(Rest.NOT_CHOSEN, f"{self._strategy} does not want it moved")

    def broker(self, broker: int) -> Cause:
        given = self._scene.given.get(self._view.brokers.names[broker], ())
        reasons: list[Reason] = [self._scene.moves[bundle].reason for bundle in given]
        if reasons:
            return Cause(reasons[0], f"{self._strategy} takes bundles off it: {reasons[0]}")
        return Cause(Rest.UNNEEDED, f"{self._strategy} takes nothing off it")
