"""Plans that go on with the answer to an event: from its first plan until it has settled.

A tenant whose consumers read an hour back leaps as a whole, and returns as a whole. The first plan
for it may be wrong, if it passes: then the plan for its return takes that back. What is made
between the two corrects the first one, as its levels get known, and what follows within a cool-down
of the return corrects the last one. None of them shows a load that swings by itself, and to accept
a wider range for each would leave the fleet as skewed as the event's answer left it.
"""

from __future__ import annotations

import numpy as np

from trimtab.load_model.estimating.doubted_leaps import find_events, find_young
from trimtab.load_model.estimating.leap_record import HORIZON_S
from trimtab.load_model.history import PlannerHistory
from trimtab.settings import Settings


def continues_answer(history: PlannerHistory, settings: Settings, now_ms: int) -> bool:
    """Whether a plan goes on with the last one's answer to an event.

    An event that began before the last plan is believed and goes on, or came back within a
    cool-down; and none that is believed began since: that is another one.
    """
    leaps, passed, planned_ms = history.leaps, history.leaps.passed, history.planned_ms
    cool_down_s = settings.round.grace_period
    # An event that lasts for longer is none any more.
    watched_s = min((now_ms - history.known_since_ms) / 1000.0, HORIZON_S + cool_down_s)
    recent = passed.began_ms >= now_ms - 1000.0 * watched_s
    ended_ms = passed.at_ms[recent]
    began_ms = np.concatenate((leaps.since_ms, passed.began_ms[recent]))
    up = np.concatenate((leaps.up, passed.lasted_s[recent] > 0))
    in_event = find_events(began_ms, up, watched_s)
    goes_on = ~find_young(leaps, now_ms, history.known_since_ms)
    settles = np.concatenate((goes_on, now_ms - ended_ms < 1000.0 * cool_down_s))
    known = in_event & settles & (began_ms <= planned_ms)
    another = (in_event & (began_ms > planned_ms))[: len(goes_on)] & goes_on
    return bool(known.any() and not another.any())
