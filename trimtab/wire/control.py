"""An operator's or the watcher's intent on trimtab.control; Kafka key is the cluster."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from trimtab.doubt import Doubt
from trimtab.policies import Isolation


class IntentKind(StrEnum):
    """What is asked for."""

    SETTINGS = "settings"
    """Change settings: ``settings`` maps names (or Pulsar's keys) to values."""
    PAUSE = "pause"
    """Keep reading, decide nothing."""
    RESUME = "resume"
    """Decide again, also where a plan that did harm holds strategies back."""
    BROKER_LOST = "broker-lost"
    """``broker``'s lease ran out: it leaves the view, and its bundles are given to others. So will
    perhaps those of ``brokers``, which have missed a renewal: all of them, or with a ``page`` those
    of the pages so far."""
    BROKER_JOINED = "broker-joined"
    """``broker`` holds a lease that it did not hold before."""
    DOUBT = "doubt"
    """For the cause ``name`` ownership is as doubtful as ``level``."""
    DRAIN = "drain"
    """Take every bundle off ``broker`` and give it none, for a shutdown or maintenance."""
    UNDRAIN = "undrain"
    """``broker`` is to be used again."""
    READMIT = "readmit"
    """``bundle`` leaves its quarantine."""
    ISOLATION = "isolation"
    """The isolation policy ``name`` is ``isolation``; without one it ends."""
    ANTI_AFFINITY = "anti-affinity"
    """The namespace ``name`` is in the anti-affinity group ``group``; in none if it is empty."""
    FAILURE_DOMAIN = "failure-domain"
    """The failure domain ``name`` is made up of ``brokers``."""


class Intent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """``id`` names it for its outcome; ``at`` is the writer's clock (epoch ms), for people."""

    id: str
    kind: IntentKind
    cluster: str
    at: int = 0
    by: str = ""
    broker: str = ""
    settings: dict[str, str | int | float | bool] = {}
    name: str = ""
    isolation: Isolation | None = None
    group: str = ""
    brokers: tuple[str, ...] = ()
    page: int = 0
    """From 1 on, of what one look at the leases found."""
    bundle: str = ""
    level: Doubt = Doubt.STABLE
    v: int = 1
