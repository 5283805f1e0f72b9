"""How much `make test` tries of what holds for any example: `make slow` tries the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from _pytest.mark import ParameterSet

_WHOLE = 100
"""A property that says a number means it for a profile with so many examples."""
_FEWEST = 3


def examples(count: int) -> settings:
    """``count``, times what the loaded profile tries of other properties for each hundred."""
    loaded = settings.get_profile(settings.get_current_profile_name())
    return settings(max_examples=max(_FEWEST, count * loaded.max_examples // _WHOLE))


def later(*cases: object) -> list[ParameterSet]:
    """Further cases, each a value or a tuple of them, that show what the others show too."""
    return [
        pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.slow)
        for case in cases
    ]
