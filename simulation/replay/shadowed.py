"""Runs another strategy on the same records, as the job's own shadow (`trimtab.shadow.run`)."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from trimtab.cluster.operator import Cluster
from trimtab.settings import PLACEMENT, Settings
from trimtab.settings.setting import InvalidSettings


@dataclass(slots=True)
class ShadowedCluster(Cluster):
    """A cluster with ``shadow`` as its shadow strategy, whatever its settings and intents say."""

    shadow: str = ""

    @property
    def settings(self) -> Settings:
        # Any: mypy sees no value in a property read from its class.
        given: Any = Cluster.settings
        return with_shadow(given.fget(self), self.shadow)


@lru_cache
def with_shadow(settings: Settings, shadow: str) -> Settings:
    """The settings with a shadow strategy, and with the active placement if that fits it.

    Raises InvalidSettings if there is no such strategy.
    """
    own = [settings.round.placement, shadow, *PLACEMENT]
    tried = [{"shadow.shedding": shadow, "shadow.placement": p} for p in own if p in PLACEMENT]
    for values in tried[:-1]:
        with suppress(InvalidSettings):
            return settings.changed(values)
    return settings.changed(tried[-1])
