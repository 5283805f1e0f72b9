"""How many examples a property is tried on: `make slow` tries five times as many."""

from __future__ import annotations

from hypothesis import settings

_USUAL = settings.get_profile("usual").max_examples


def examples(count: int) -> settings:
    """``count``, or as many times more as the loaded profile tries of other properties."""
    loaded = settings.get_profile(settings.get_current_profile_name())
    return settings(max_examples=count * loaded.max_examples // _USUAL)
