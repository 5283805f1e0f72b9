"""What a round repairs or drains in a cluster before it balances."""

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
    """The present or last owner: it gets the bundle again only if there is no other broker."""
    destination: str | None = None
    """The broker that should have got it: it gets the bundle if it can."""


@dataclass(frozen=True, slots=True)
class RepairNeeds:
    """The repair needs of one cluster at one time; empty by default."""

    needs: tuple[Need, ...] = ()
    expected: Mapping[str, str] = field(default_factory=dict)
    """Bundle to broker, for bundles whose new broker has not confirmed that it serves them."""
    draining: frozenset[str] = frozenset()
    doubt: Doubt = Doubt.STABLE


NOTHING_TO_REPAIR: Final = RepairNeeds()
