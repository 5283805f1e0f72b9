"""The cause of what happened to a bundle or broker."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from trimtab.wire.explanation import Nearest


class Cause(NamedTuple):
    """A rule, a sentence that states it with figures, and the setting it depends on."""

    rule: str
    """A Reason, Rest or Rule, or the word of a strategy that brings its own reasons."""
    why: str
    nearest: Nearest | None = None
    figures: Mapping[str, float] = MappingProxyType({})
    until: int = 0
