"""The cause of what happened to a bundle or broker."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from trimtab.reasons import Reason, Rest, Rule
from trimtab.wire.explanation import Nearest


class Cause(NamedTuple):
    """A rule, a sentence that states it with figures, and the setting it depends on."""

    rule: Reason | Rest | Rule
    why: str
    nearest: Nearest | None = None
    figures: Mapping[str, float] = MappingProxyType({})
    until: int = 0
