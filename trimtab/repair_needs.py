"""What is wrong in a cluster, or being taken out of it: a round sees to it before it balances."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from trimtab.doubt import Doubt
from trimtab.model import Epoch
from trimtab.ownership import Event
from trimtab.reasons import Reason


@dataclass(frozen=True, slots=True)
class Need:
    """A record that cannot stay as it is: it needs ``event``, at its ``epoch``."""

    bundle: str
    event: Event
    reason: Reason
    epoch: Epoch
    owner: str | None = None
    """Who has it, or had it: it gets the bundle again only if there is no other."""
    destination: str | None = None
    """Who was to have it: it gets the bundle if it can."""


@dataclass(frozen=True, slots=True)
class RepairNeeds:
    """Of one cluster at one time; nothing unless said."""

    needs: tuple[Need, ...] = ()
    expected: Mapping[str, str] = field(default_factory=dict)
    """Bundle to broker, for those given to one that has not said that it serves them."""
    draining: frozenset[str] = frozenset()
    doubt: Doubt = Doubt.STABLE


NOTHING_TO_REPAIR: Final = RepairNeeds()
