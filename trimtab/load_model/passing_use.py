"""What may pass of brokers' own use (`resources.own_use`), by what the history knows of each."""

from __future__ import annotations

import numpy as np

from trimtab.arrays import Floats
from trimtab.load import usage
from trimtab.load_model.bursts import find_near_overload
from trimtab.load_model.history import PlannerHistory
from trimtab.load_model.resources.costs import kinds
from trimtab.load_model.resources.own_use import (
    doubted_part,
    find_unusual,
    leave_out_unexplained,
)
from trimtab.load_model.resources.takes import Takes
from trimtab.settings import Settings
from trimtab.view import Brokers


def leave_out_own(
    takes: Takes, brokers: Brokers, history: PlannerHistory, settings: Settings
) -> Takes:
    """The same without what may pass of what brokers take by themselves, of each resource."""
    part, kind = _find_doubted_part(brokers, history, settings), kinds(brokers.limits)[1]
    return takes.at_least(leave_out_unexplained(takes.shares, takes.explained, part, kind))


def find_doubted(brokers: Brokers, history: PlannerHistory, settings: Settings) -> Floats:
    """(n,) what may pass of what traffic does not explain: nothing of what a finished plan showed,
    nor near overload."""
    unexplained, ahead = history.unexplained, history.ahead
    own = np.array([unexplained[name] - ahead.get(name, 0.0) for name in brokers.names])
    part = _find_doubted_part(brokers, history, settings)
    return part * find_unusual(own, kinds(brokers.limits)[1])


def _find_doubted_part(brokers: Brokers, history: PlannerHistory, settings: Settings) -> Floats:
    """(n,) the part of what brokers take by themselves that may pass; 0 near overload."""
    since_ms = np.array([history.since_ms[name] for name in brokers.names])
    part = doubted_part(np.maximum(brokers.reported_ms - since_ms, 0) / 1000.0)
    relieved = usage(brokers.resources, settings.weights) > find_near_overload(settings)
    return np.where(relieved, 0.0, part)
