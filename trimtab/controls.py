"""What people allow in a cluster: the modes of namespaces, pins of bundles, budgets of tenants.

A pin has an owner and an end; the rest stands until it is changed.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

from trimtab.model import namespace_of


class Mode(StrEnum):
    """Whether changes that strategies want are made, proposed or only shown. Repairs, and what
    operators ask for, are carried out in each of them but ``observe`` of a whole cluster."""

    OBSERVE = "observe"
    """They are shown. For a whole cluster this is the setting ``round.observe_only``."""
    PROPOSE = "propose"
    """They are kept as a plan that a person may carry out; a newer plan takes its place."""
    APPROVE = "approve"
    """They are kept as a plan that runs once a person approves it; no newer plan is made before it
    is decided or expires."""
    AUTOMATIC = "automatic"
    """They are carried out."""

    @property
    def keeps_plans(self) -> bool:
        """Whether changes wait as a plan that a person decides about."""
        return self in (Mode.PROPOSE, Mode.APPROVE)


@dataclass(frozen=True, slots=True)
class Pin:
    """A bundle, or all of a namespace, that is not moved, split or merged before ``until`` (ms)."""

    until: int
    by: str = ""
    """Who pinned it."""
    reason: str = ""
    broker: str = ""
    """Where the bundle goes if it must be placed again; empty: where placement finds best."""


@dataclass(frozen=True, slots=True)
class Controls:
    """All of one cluster; replaced, never changed."""

    modes: dict[str, Mode] = field(default_factory=dict)
    """Namespaces with a mode of their own, instead of the cluster's."""
    pins: dict[str, Pin] = field(default_factory=dict)
    """By bundle or namespace."""
    budgets: dict[str, int] = field(default_factory=dict)
    """Tenants with a number of hand-overs of their own, instead of ``plans.tenant_moves``."""

    def at(self, now_ms: int) -> Controls:
        """Without the pins that have ended."""
        standing = {name: pin for name, pin in self.pins.items() if pin.until > now_ms}
        return self if len(standing) == len(self.pins) else replace(self, pins=standing)

    def pin_of(self, bundle: str) -> Pin | None:
        """The bundle's own pin, or its namespace's."""
        return self.pins.get(bundle) or self.pins.get(namespace_of(bundle))


NO_CONTROLS: Final = Controls()
