"""Operator ② with two brokers, and what becomes of its moves told step by step."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np

from tests.support.clusters_by_rows import change_row, cluster, held, record_row
from tests.support.reports import bundle, snapshot
from trimtab.arrays import CPU, Floats
from trimtab.intake.averages import decay
from trimtab.intake.snapshot import IntakeSettings
from trimtab.model import Epoch
from trimtab.ownership import Event, State
from trimtab.wire.columns import pack
from trimtab.wire.ownership import Record
from trimtab.wire.rounds import RoundRecord
from trimtab.wire.rows import Row, Tag

EIGHTHS = [bundle(i, 8) for i in range(8)]
SECOND = 1000


class Story:
    """Broker a begins with all bundles, of 100 messages/s each; times are in seconds."""

    def __init__(self, settings: Mapping[str, object] | None = None, count: int = 8) -> None:
        self.it = cluster(settings)
        self.owner = dict.fromkeys(EIGHTHS[:count], "a:1")
        self.counter = dict.fromkeys(self.owner, 1)
        self.averages: dict[str, tuple[float, Floats]] = {}
        self.it.receive([change_row(name, owner) for name, owner in self.owner.items()], 0)

    def reports(self, at: float, **percent: float) -> None:
        """Each broker named says what its processor does, and its bundles."""
        rows = []
        for name, cpu in percent.items():
            mine = {each: 100.0 for each, owner in self.owner.items() if owner == f"{name}:1"}
            told = replace(snapshot(f"{name}:1", mine), appended_ms=round(at * SECOND))
            # Not by way of a report, which is not believed where it says far more than 100.
            told.resources[CPU] = cpu
            figures = np.concatenate((told.resources, told.traffic))
            since, before = self.averages.get(name, (at, figures))
            smoothed = decay(before, figures, at - since, IntakeSettings().half_life)
            self.averages[name] = at, smoothed
            told = replace(told, smoothed=smoothed)
            row = Row("c", Tag.SNAPSHOT, f"{name}:1", pack(told), round(at * SECOND), accepted=1)
            rows.append(row)
        self.it.receive(rows, round(at * SECOND))

    def round(self, at: float) -> RoundRecord:
        return held(self.it, round(at * SECOND))

    def land(self, bundles: Iterable[str], to: str = "b:1", seconds: float = 0.0) -> None:
        """They are handed over, which takes so long by the store's clock."""
        for name in bundles:
            took = round(seconds * SECOND)
            self._change(name, Event.TRANSFER, State.RELEASING, self.owner[name], to, 10_000)
            self.owner[name] = to
            self._change(name, Event.HAND_OVER, State.ASSIGNING, to, None, 10_000)
            self._change(name, Event.SERVE, State.OWNED, to, None, 10_000 + took)

    def keep(self, bundles: Iterable[str]) -> None:
        """Their owners keep them after all."""
        for name in bundles:
            self._change(name, Event.TRANSFER, State.RELEASING, self.owner[name], "b:1", 10_000)
            self._change(name, Event.DECLINE, State.OWNED, self.owner[name], None, 11_000)

    def set_out(self, bundles: Iterable[str], to: str = "b:1") -> None:
        """The store has accepted the transfers, and no more is heard."""
        for name in bundles:
            self._change(name, Event.TRANSFER, State.RELEASING, self.owner[name], to, 10_000)

    def _change(  # noqa: PLR0913 - a record's own members
        self, name: str, event: Event, state: State, owner: str, to: str | None, since: int
    ) -> None:
        self.counter[name] += 1
        epoch = Epoch(1, self.counter[name])
        record = Record(state=state, epoch=epoch, owner=owner, destination=to, since=since)
        self.it.receive([record_row(name, record, event)], 0)
