"""How many examples a property is tried on: `make slow` tries ten times as many."""

from __future__ import annotations

from hypothesis import settings

_WHOLE = 100
"""A property that says a number means it for a profile with so many examples."""


def examples(count: int) -> settings:
    """``count``, times what the loaded profile tries of other properties for each hundred."""
    loaded = settings.get_profile(settings.get_current_profile_name())
    return settings(max_examples=count * loaded.max_examples // _WHOLE)
