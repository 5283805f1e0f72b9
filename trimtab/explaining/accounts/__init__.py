"""What a strategy compared in a round, and how that came out: one strategy a file, chosen by name.

An account is opened for one round in which the strategy was asked. It works on the view that the
strategy was shown, and asks the strategy's own functions where there are any.
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
    """Of one strategy; rows are those of `Scene.seen`."""

    def __init__(self, scene: Scene) -> None: ...

    @property
    def fleet(self) -> Fleet | None:
        """What it predicts, if it predicts."""

    def moved(self, bundle: int) -> Cause:
        """Why it wanted a bundle moved, and what setting would have kept it."""

    def stayed(self, bundle: int) -> Cause:
        """Why it left a movable bundle of an available broker where it is."""

    def broker(self, broker: int) -> Cause:
        """Why it takes bundles off a broker, or does not."""


ACCOUNTS: Final[Mapping[str, type[Account]]] = {
    "trimtab": TrimtabAccount,
    "threshold": ThresholdAccount,
    "overload": OverloadAccount,
    "uniform": UniformAccount,
    "avg": AvgAccount,
    "transfer": TransferAccount,
}


def account_of(scene: Scene) -> Account:
    """That of the strategy in charge."""
    return ACCOUNTS.get(scene.settings.round.shedding, PlainAccount)(scene)
