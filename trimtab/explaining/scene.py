"""One round, as needed to explain it: its input, its decisions, its memory."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from trimtab.arrays import Bools, Ints
from trimtab.filters.request import Projection
from trimtab.health.assessment import Assessment, situation_of
from trimtab.names import rows_by_name
from trimtab.plan import Merge, Move, Plan, Refusal, Repair, Split
from trimtab.reasons import IDLE, ORDERED, Reason, Rule
from trimtab.round.decide import decide, repair_only
from trimtab.round.placing import lightly_used
from trimtab.round.shown import show_to_strategies
from trimtab.round.urgent import computable
from trimtab.settings import Settings
from trimtab.splitting.busy_topics import BusyTopic, find_busy_topics
from trimtab.state.memory import Memory
from trimtab.state.round_state import RoundState
from trimtab.view import View, available_part

ASKED = IDLE | {None}
"""``Plan.skipped`` of a round that asked the strategy."""
WHOLE = (Rule.UNDIVIDABLE, Rule.FULL_NAMESPACE)
"""Rules that refuse splits; all others refuse moves."""


@dataclass(frozen=True, eq=False)
class Scene:
    """One round: ``view`` and ``memory`` as it received them; ``after`` is the state it left."""

    view: View
    memory: Memory
    plan: Plan
    after: RoundState
    settings: Settings
    situation: Assessment

    @property
    def now_ms(self) -> int:
        """The round's time (batch timestamp)."""
        return self.view.now_ms

    @property
    def number(self) -> int:
        return self.after.number

    @property
    def before(self) -> RoundState:
        """The state that the round began with."""
        return replace(self.memory.round, paused=self.memory.paused)

    @property
    def asked(self) -> bool:
        """Whether the strategy was asked."""
        return self.plan.skipped in ASKED

    @cached_property
    def computable(self) -> bool:
        return computable(self.view.brokers, self.view.bundles)

    @cached_property
    def shown(self) -> View:
        """Brokers and bundles as the strategy saw them, and also those it did not see."""
        if not self.computable:
            return self.view
        return show_to_strategies(self.view, self.before, self.plan, self.settings, self.now_ms)

    @cached_property
    def seen(self) -> View:
        """The view that the strategy saw."""
        return available_part(self.shown)

    @cached_property
    def kept(self) -> Bools:
        """(m,) bundles of `shown` that are in `seen`."""
        kept: Bools = self.shown.brokers.available[self.shown.intended]
        return kept

    @cached_property
    def seen_brokers(self) -> Ints:
        """Rows in `shown` of the brokers of `seen`."""
        return np.flatnonzero(self.shown.brokers.available)

    @cached_property
    def broker_places(self) -> Ints:
        """(n,) row in `seen` of each broker of `shown`, -1 if it is not there."""
        available = self.shown.brokers.available
        places: Ints = np.where(available, np.cumsum(available) - 1, -1)
        return places

    @cached_property
    def _bundle_places(self) -> Ints:
        places: Ints = np.where(self.kept, np.cumsum(self.kept) - 1, -1)
        return places

    def place(self, bundle: int) -> int:
        """Row in `seen` of a bundle row of `shown`; -1 if it is not there."""
        return bundle if self.seen is self.shown else int(self._bundle_places[bundle])

    @cached_property
    def broker_rows(self) -> dict[str, int]:
        return {name: row for row, name in enumerate(self.view.brokers.names)}

    @cached_property
    def _planned_rows(self) -> dict[str, int]:
        names = {*self.moves, *self.refusals, *self.splits, *self.merges, *self.repairs, *self.held}
        return rows_by_name(self.view.bundles.names, names)

    def bundle_row(self, bundle: str) -> int | None:
        """The bundle's row; None if it is not in the view."""
        found = self._planned_rows.get(bundle)
        if found is not None:
            return found
        return rows_by_name(self.view.bundles.names, {bundle}).get(bundle)

    @cached_property
    def moves(self) -> dict[str, Move]:
        return {move.bundle: move for move in self.plan.moves}

    @cached_property
    def refusals(self) -> dict[str, Refusal]:
        """The first refusal of each bundle that was not moved by another wish."""
        refused = {refusal.bundle: refusal for refusal in reversed(self.plan.refusals)}
        return {bundle: each for bundle, each in refused.items() if bundle not in self.moves}

    @cached_property
    def splits(self) -> dict[str, Split]:
        return {split.bundle: split for split in self.plan.splits}

    @cached_property
    def merges(self) -> dict[str, Merge]:
        """Merges by each of their two parts."""
        return {part: merge for merge in self.plan.merges for part in merge.parts}

    @cached_property
    def held(self) -> dict[str, str]:
        """What would become of each bundle whose change the round held back."""
        held = self.plan.held
        found = {move.bundle: f"moved to {move.destination}" for move in held.moves}
        found |= {split.bundle: "split" for split in held.splits}
        return found | {part: "merged" for merge in held.merges for part in merge.parts}

    @cached_property
    def repairs(self) -> dict[str, Repair]:
        return {repair.bundle: repair for repair in self.plan.repairs}

    @cached_property
    def busy_topics(self) -> dict[str, BusyTopic]:
        """By bundle; the busiest first."""
        if not self.computable:
            return {}
        found = find_busy_topics(self.view, self.plan.refusals, self.settings.split)
        return {each.bundle: each for each in found}

    @cached_property
    def given(self) -> dict[str, list[str]]:
        """Broker to the bundles that the plan takes off it."""
        found: dict[str, list[str]] = {}
        for move in self.plan.moves:
            found.setdefault(move.source, []).append(move.bundle)
        return found

    @cached_property
    def gotten(self) -> dict[str, list[str]]:
        """Broker to the bundles that the plan, or a repair, gives it."""
        found: dict[str, list[str]] = {}
        for move in self.plan.moves:
            found.setdefault(move.destination, []).append(move.bundle)
        for repair in self.plan.repairs:
            if repair.broker is not None:
                found.setdefault(repair.broker, []).append(repair.bundle)
        return found

    @cached_property
    def balancing(self) -> tuple[Move, ...]:
        """The moves that the strategy wanted."""
        apart = (*ORDERED, Reason.DIVIDED, Reason.UNDONE)
        return tuple(move for move in self.plan.moves if move.reason not in apart)

    @cached_property
    def wanted(self) -> bool:
        """Whether the strategy wanted anything moved, granted or not."""
        children, draining = self.before.halves, self.memory.liveness.draining
        return bool(self.balancing) or any(
            refusal.rule not in WHOLE
            and refusal.bundle not in children
            and refusal.bundle not in self.before.asked
            and refusal.bundle not in self.before.asked_moves
            and refusal.source not in draining
            for refusal in self.plan.refusals
        )

    @property
    def directed(self) -> bool:
        """Whether the strategy names the destinations itself."""
        settings = self.settings
        if settings.round.shedding == "transfer":
            return settings.transfer.directed
        return settings.round.shedding in ("trimtab", "avg")

    @cached_property
    def light(self) -> Bools:
        """(n,) brokers that placements prefer because they are not overloaded."""
        return lightly_used(self.shown.brokers, self.settings)

    @cached_property
    def projection(self) -> Projection:
        """Each broker's load before the plan, with everything in flight landed."""
        return Projection(self.shown)


def again(scene: Scene, changes: dict[str, object]) -> Scene:
    """The scene of the same round with other settings; raises InvalidSettings."""
    settings = scene.settings.changed(changes)
    deciding = repair_only if scene.plan.skipped is Rule.REPAIR_ONLY else decide
    # What is believed about the brokers depends on settings too.
    found = situation_of(scene.memory, scene.view.records, settings, scene.now_ms)
    view = replace(scene.view, trouble=found.trouble)
    draws = scene.before.draws(view.cluster)
    plan, after = deciding(view, scene.before, settings, scene.now_ms, draws)
    return Scene(view, scene.memory, plan, after, settings, found)
