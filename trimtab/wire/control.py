"""An operator's or the watcher's intent on trimtab.control; Kafka key is the cluster."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class Kind(StrEnum):
    """What is asked for."""

    SETTINGS = "settings"
    """Change settings: ``settings`` maps names (or Pulsar's keys) to values."""
    PAUSE = "pause"
    """Keep reading, decide nothing."""
    RESUME = "resume"
    BROKER_LOST = "broker-lost"
    """``broker``'s lease ran out: it leaves the view until it reports anew."""


class Intent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """``id`` names it for its outcome; ``at`` is the writer's clock (epoch ms), for people."""

    id: str
    kind: Kind
    cluster: str
    at: int = 0
    by: str = ""
    broker: str = ""
    settings: dict[str, str | int | float | bool] = {}
    v: int = 1
