"""What the round makes of wishes, without a strategy that proposes them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trimtab.plan import Plan, ShedWish
from trimtab.round.allowance import Allowance
from trimtab.round.disposal import Disposal
from trimtab.round.placing import Placing
from trimtab.settings import Settings
from trimtab.state.hand_overs import Budgets
from trimtab.state.round_state import Histories
from trimtab.view import View


def disposed(view: View, wishes: Sequence[ShedWish], settings: Settings | None = None) -> Plan:
    """The moves and refusals of a first round."""
    settings = settings or Settings()
    placing = Placing(view, Histories(), settings, np.random.default_rng(0))
    budgets = Budgets(settings.plans, view.controls, {}, view.now_ms)
    return Disposal(placing, Allowance(settings, budgets)).plan(wishes, frozenset())
