"""The usage of a fleet's brokers after some moves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from trimtab.load_model.fleet import Fleet
from trimtab.planner.search.ground import BoardMove


class Standing:
    """The usage of a fleet's brokers while steps are applied to it, one after the other."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self.usage = fleet.usage.copy()
        """(n,)"""
        self._used = None if fleet.takes is None else fleet.takes.used.copy()

    def arrived(self, step: BoardMove) -> float:
        """Usage of the step's destination once the bundle is there."""
        row, _, to = step
        fleet, takes = self._fleet, self._fleet.takes
        if takes is None or self._used is None:
            return float(self.usage[to] + fleet.size[row] * fleet.gain[to])
        return float(((self._used[:, to] + takes.need[:, row]) * takes.scale[:, to]).max())

    def apply(self, step: BoardMove) -> None:
        """Move the step's bundle."""
        row, source, to = step
        fleet, takes = self._fleet, self._fleet.takes
        if takes is None or self._used is None:
            self.usage[source] -= fleet.size[row] * fleet.gain[source]
            self.usage[to] += fleet.size[row] * fleet.gain[to]
            return
        self._used[:, source] -= takes.need[:, row]
        self._used[:, to] += takes.need[:, row]
        for broker in (source, to):
            self.usage[broker] = (self._used[:, broker] * takes.scale[:, broker]).max()

    @property
    def fleet(self) -> Fleet:
        """The fleet with this usage; where bundles are is the caller's to say."""
        takes = self._fleet.takes
        if takes is not None and self._used is not None:
            takes = replace(takes, used=self._used)
        return replace(self._fleet, usage=self.usage, takes=takes)


def stand(fleet: Fleet, steps: Sequence[BoardMove]) -> Standing:
    """The standing after the steps."""
    standing = Standing(fleet)
    for step in steps:
        standing.apply(step)
    return standing
