"""What the round makes of wishes, without a strategy that proposes them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trimtab.plan import Plan, ShedWish
from trimtab.round.disposal import Wanted, grant
from trimtab.settings import Settings
from trimtab.state.round_state import RoundState
from trimtab.view import View


def disposed(view: View, wishes: Sequence[ShedWish], settings: Settings | None = None) -> Plan:
    """The moves and refusals of a first round."""
    chosen, rng = settings or Settings(), np.random.default_rng(0)
    return grant(view, Wanted(wishes), RoundState(), chosen, rng)[0]
