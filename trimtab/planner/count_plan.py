"""What a plan adds to the unrest, by which the next plan waits (`trimtab.load_model.wariness`)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trimtab.load_model.event_answers import continues_answer
from trimtab.load_model.history import PlannerHistory
from trimtab.load_model.wariness import Made, find_answered_part, note_plan
from trimtab.plan import MOST_AT_ONCE
from trimtab.planner.outlook import Outlook
from trimtab.planner.search.ground import BoardMove


def count_plan(
    outlook: Outlook, balancing: Sequence[BoardMove], history: PlannerHistory
) -> PlannerHistory:
    """The history with the plan of the outlook's draft; ``balancing`` are its moves for balance."""
    fleet, draft = outlook.fleet, outlook.draft
    settings, now_ms = draft.settings, draft.view.now_ms
    most = settings.round.max_moves or MOST_AT_ONCE
    made = Made(
        moves=len(balancing),
        answered=_find_answered_part(outlook, balancing, history),
        provisional=fleet.growing or bool(fleet.hidden.any()),
        cut=draft.cut or fleet.struck > 0 or fleet.limit > 0 or len(draft.steps) >= most,
    )
    return note_plan(history, made, outlook.unrest, settings, now_ms)


def _find_answered_part(
    outlook: Outlook, steps: Sequence[BoardMove], history: PlannerHistory
) -> float:
    """The part of the plan that answers steps of bundles.

    An event is no swing, neither when it comes nor when it passes, and what goes on with the answer
    to one is not counted again; and a broker near overload is relieved however wide a range is
    accepted.
    """
    fleet, view = outlook.fleet, outlook.draft.view
    if fleet.struck or fleet.limit:
        return 1.0
    settings = outlook.draft.settings
    # Where counters err, what leaps together may be no event.
    if not fleet.as_reported and continues_answer(history, settings, view.now_ms):
        return 1.0
    brought = np.zeros(len(fleet.usage))
    for step in steps:
        brought[step.source] -= fleet.size[step.bundle]
        brought[step.destination] += fleet.size[step.bundle]
    return find_answered_part(history, view.bundles.names, fleet.where, brought, view.now_ms)
