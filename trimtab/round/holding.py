"""Which bundles strategies must leave alone: pinned ones, and those whose changes wait.

waits(namespace) = its mode is not automatic (the cluster's mode, if it has none), or no window is
                   open
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trimtab.arrays import Bools
from trimtab.controls import Controls, Mode
from trimtab.names import rows_of
from trimtab.reasons import Rule
from trimtab.settings import Settings
from trimtab.settings.windows import is_open
from trimtab.view import Bundles


class Holding(NamedTuple):
    """(m,) bundles of a view that are pinned, and that wait."""

    pinned: Bools
    waiting: Bools

    @property
    def all_wait(self) -> bool:
        """Whether nothing that strategies want is carried out now."""
        return bool(self.waiting.size and self.waiting.all())

    @property
    def fixed(self) -> list[int]:
        """The rows that strategies must leave where they are, if not all wait."""
        held = self.pinned if self.all_wait else self.pinned | self.waiting
        return np.flatnonzero(held).tolist()

    @property
    def free(self) -> list[int]:
        """The rows that must stay in a plan for the waiting ones alone."""
        return np.flatnonzero(self.pinned | ~self.waiting).tolist()


def find_holding(bundles: Bundles, controls: Controls, settings: Settings, now_ms: int) -> Holding:
    """Which bundles are pinned, and which wait."""
    waiting = _find_waiting(bundles, controls, settings, now_ms)
    pinned = np.zeros_like(waiting)
    if controls.pins:
        pinned |= _of_namespaces(bundles, [name in controls.pins for name in bundles.namespaces])
        pinned[rows_of(bundles.names, controls.pins)] = True
    return Holding(pinned, waiting)


def _find_waiting(bundles: Bundles, controls: Controls, settings: Settings, now_ms: int) -> Bools:
    acts = not controls.modes and waits(controls, settings, "", now_ms) is None
    if acts or settings.round.observe_only:
        # Of what is only shown nothing needs to wait.
        return np.zeros(len(bundles.names), dtype=np.bool_)
    rules = [waits(controls, settings, name, now_ms) for name in bundles.namespaces]
    return _of_namespaces(bundles, [rule is not None for rule in rules])


def waits(controls: Controls, settings: Settings, namespace: str, now_ms: int) -> Rule | None:
    """Why what strategies want of a namespace is not carried out now; None if it is."""
    if mode_of(controls, settings, namespace) is not Mode.AUTOMATIC:
        return Rule.HELD
    windows = settings.plans.windows
    return Rule.OUTSIDE_WINDOW if windows and not is_open(windows, now_ms) else None


def mode_of(controls: Controls, settings: Settings, namespace: str) -> Mode:
    """The namespace's own mode, or else the cluster's."""
    return controls.modes.get(namespace, Mode(settings.plans.mode))


def _of_namespaces(bundles: Bundles, chosen: list[bool]) -> Bools:
    """(m,) the bundles of the chosen ones of ``Bundles.namespaces``."""
    found: Bools = np.array([*chosen, False], dtype=np.bool_)[bundles.namespace]
    return found
