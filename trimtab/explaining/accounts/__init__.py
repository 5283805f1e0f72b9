"""What a strategy compared in a round, and the result: one file per strategy, chosen by name.

An account is opened for one round that asked the strategy. It works on the view that the strategy
saw, and calls the strategy's own functions where they exist.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Protocol

from trimtab.explaining.accounts.avg import AvgAccount
from trimtab.explaining.accounts.cause import Cause
from trimtab.explaining.accounts.overload import OverloadAccount
from trimtab.explaining.accounts.plain import PlainAccount
from trimtab.explaining.accounts.threshold import ThresholdAccount
from trimtab.explaining.accounts.transfer import TransferAccount
from trimtab.explaining.accounts.trimtab import TrimtabAccount
from trimtab.explaining.accounts.uniform import UniformAccount
from trimtab.explaining.scene import Scene
from trimtab.load_model.fleet import Fleet


class Account(Protocol):
    """The account of one strategy; rows are those of `Scene.seen`."""

    def __init__(self, scene: Scene) -> None: ...

    @property
    def fleet(self) -> Fleet | None:
        """The strategy's prediction, if it predicts."""

    def moved(self, bundle: int) -> Cause:
        """Why the strategy wanted a bundle moved, and the setting that would have kept it."""

    def stayed(self, bundle: int) -> Cause:
        """Why the strategy left a movable bundle of an available broker in place."""

    def broker(self, broker: int) -> Cause:
        """Why the strategy takes bundles off a broker, or does not."""


ACCOUNTS: Final[Mapping[str, type[Account]]] = {
    "trimtab": TrimtabAccount,
    "threshold": ThresholdAccount,
    "overload": OverloadAccount,
    "uniform": UniformAccount,
    "avg": AvgAccount,
    "transfer": TransferAccount,
}


def account_of(scene: Scene) -> Account:
    """The account of the active strategy."""
    return ACCOUNTS.get(scene.settings.round.shedding, PlainAccount)(scene)
