"""Audits ownership: reads the journal and the commands, and reports which rules they break.

for each change: is it new? what is wrong with the transitions from and to its neighbours?
for each command: is there a change with its epoch, and a timely one after that?
at a settled moment: is a change missing? do the bundles of each namespace tile the ring?

Late and repeated entries do no harm: a conclusion from something missing waits ``grace_ms`` on the
journal's own clock, which is Redis's.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Final

from trimtab.auditing.answers import answer
from trimtab.auditing.births import flaw_of_birth
from trimtab.auditing.eras import Eras
from trimtab.auditing.finding import Violation, format_epoch, format_record
from trimtab.auditing.record_history import HistoryPlace, RecordHistory
from trimtab.auditing.rules import (
    NOTES,
    RuleBreach,
    ViolationKind,
    is_birth,
    misstep,
    stands,
)
from trimtab.auditing.tiling import Tiling
from trimtab.model import Epoch, namespace_of
from trimtab.ownership import Event
from trimtab.wire.command import Command, CommandKind
from trimtab.wire.ownership import NO_RECORD, Change, Record

__all__ = ["GRACE_MS", "NOTES", "Audit", "Violation", "ViolationKind"]

GRACE_MS: Final = 60_000
"""How late an entry or the end of a command may be. Shorter: a slow relay looks like a loss;
longer: findings come later."""

QUIET_MS: Final = 600_000
"""Time without growth after which a namespace that never covered its ring is reported."""

_LOST: Final = RuleBreach(ViolationKind.LOST, "the store went on without it")

_Key = tuple[str, str]
"""Cluster and bundle, or cluster and namespace."""


class Audit:
    """A fold over the journal and the commands of any number of clusters.

    Keeps a short history per bundle, and the commands that have not ended.
    """

    def __init__(self, grace_ms: int = GRACE_MS, quiet_ms: int = QUIET_MS) -> None:
        self._grace, self._quiet = grace_ms, quiet_ms
        self._now = 0
        self.clock = 0
        """When the newest change seen was made, in epoch ms of Redis's clock."""
        self._histories: dict[_Key, RecordHistory] = {}
        self._tilings: dict[_Key, Tiling] = {}
        self._eras: defaultdict[str, Eras] = defaultdict(Eras)
        self._waiting: dict[_Key, dict[tuple[str, Epoch], Command]] = {}
        self._with_gaps: set[_Key] = set()
        self._found: list[Violation] = []

    @property
    def clusters(self) -> frozenset[str]:
        """The clusters whose changes were seen."""
        return frozenset(cluster for cluster, _ in self._tilings)

    @property
    def bundles(self) -> int:
        """How many bundles have had a change."""
        return len(self._histories)

    def see_change(self, change: Change) -> None:
        """Take in a journal entry, from the topic or the stream."""
        key = change.cluster, change.bundle
        self._eras[change.cluster].see(change)
        if change.event is not Event.RESTORE:
            # A restored record keeps its old time.
            self.clock = max(self.clock, change.record.since)
        history = self._histories.setdefault(key, RecordHistory())
        if change.pruned:
            history.pruned = max(history.pruned, change.record.epoch)
        for lost in history.forget_lost(change):
            self._tell(key, _LOST, lost)
        match history.place(change):
            case HistoryPlace.LOST:
                self._tell(key, _LOST, change)
            case HistoryPlace.NEW:
                self._take(key, history, change)
            case HistoryPlace.CONFLICT:
                self._tell(
                    key, RuleBreach(ViolationKind.CONFLICT, "another record has this epoch"), change
                )
            case HistoryPlace.BACKWARD:
                self._tell(
                    key,
                    RuleBreach(ViolationKind.BACKWARD, "later records have higher epochs"),
                    change,
                )

    def see_command(self, command: Command) -> None:
        """Take in a command, or a copy of one; one that is about no bundle breaks no rule."""
        if command.kind is CommandKind.TOPIC_MIGRATED:
            return
        key = command.cluster, command.bundle
        if command.generation != command.epoch.generation:
            detail = f"{command.id} has generation {command.generation}"
            epoch = f"and epoch {format_epoch(command.epoch)}"
            self._tell(key, RuleBreach(ViolationKind.GENERATION, f"{detail} {epoch}"))
        if not self._is_done(key, command):
            self._waiting.setdefault(key, {})[command.id, command.epoch] = command

    def see_open(self, cluster: str, generation: int) -> None:
        """Note a generation that a cluster's store is open to; it may have changed nothing yet."""
        self._eras[cluster].open(generation)

    def settle(self, now_ms: int) -> list[Violation]:
        """The violations found since the last call.

        Says that all changes from before ``now_ms`` (the journal's clock) were seen: what is still
        missing counts as late.
        """
        self._now = max(self._now, now_ms)
        for key in list(self._with_gaps):
            self._settle_gaps(key, self._histories[key])
        for key, tiling in self._tilings.items():
            self._settle_tiling(key, tiling)
        for key in list(self._waiting):
            self._settle_commands(key)
        found, self._found = self._found, []
        return found

    def behind(self, cluster: str, records: Mapping[str, Record]) -> list[Violation]:
        """Violations for records in Redis older than changes seen before the records were read."""
        return [
            self._violation(
                (of, bundle), RuleBreach(ViolationKind.BEHIND, f"Redis has {format_record(record)}")
            )
            for (of, bundle), history in self._histories.items()
            if of == cluster
            and (record := records.get(bundle, NO_RECORD)).epoch < history.newest().record.epoch
            and (bundle in records or history.pruned < history.newest().record.epoch)
        ]

    def unjournalled(self, cluster: str, records: Mapping[str, Record]) -> list[Violation]:
        """Violations for records in Redis that no change seen since their reading explains."""
        return [
            self._violation(
                key, RuleBreach(ViolationKind.UNJOURNALLED, f"Redis has {format_record(record)}")
            )
            for bundle, record in records.items()
            if (history := self._histories.get(key := (cluster, bundle))) is None
            or not history.knows(record)
        ]

    @property
    def _until(self) -> int:
        """The time before which journalled entries that have not arrived are missing."""
        return self._now - self._grace

    def _take(self, key: _Key, history: RecordHistory, change: Change) -> None:
        cluster, bundle = key
        tiling = self._tilings.setdefault((cluster, namespace_of(bundle)), Tiling())
        for before, after in history.around(change):
            flaw = _flaw_between(before, after)
            if flaw is not None:
                self._tell(key, flaw, after)
            if before is None or stands(before.record) != stands(after.record):
                tiling.note(after, max(self._now, self.clock))
        if any(history.gaps()):
            self._with_gaps.add(key)
        if key in self._waiting:
            self._settle_commands(key)
        history.trim()

    def _settle_gaps(self, key: _Key, history: RecordHistory) -> None:
        for before, after in list(history.gaps()):
            if after.record.since <= self._until:
                epochs = (
                    f"{format_epoch(before.record.epoch)} and {format_epoch(after.record.epoch)}"
                )
                self._tell(key, RuleBreach(ViolationKind.GAP, f"nothing between {epochs}"), after)
                history.told = after.record.epoch.counter
        history.trim()
        if not any(history.gaps()):
            self._with_gaps.discard(key)

    def _settle_tiling(self, key: _Key, tiling: Tiling) -> None:
        cluster, _ = key
        for moment in tiling.due(self._until):
            for child in filter(is_birth, moment):
                flaw = flaw_of_birth(child, moment, self._before)
                if flaw is not None:
                    self._tell((cluster, child.bundle), flaw, child)
            for bundle, flaw in tiling.take(moment):
                self._tell((cluster, bundle), flaw)
        if tiling.is_news(self._now - self._quiet):
            detail = f"its bundles cover {tiling.covered:.0%} of the ring"
            self._tell(key, RuleBreach(ViolationKind.INCOMPLETE, detail))

    def _before(self, change: Change) -> Change | None:
        """The change before this one in its bundle's history."""
        return self._histories[change.cluster, change.bundle].before(change.record.epoch)

    def _settle_commands(self, key: _Key) -> None:
        waiting = self._waiting[key]
        for name, command in list(waiting.items()):
            if self._is_done(key, command):
                del waiting[name]
        if not waiting:
            del self._waiting[key]

    def _is_done(self, key: _Key, command: Command) -> bool:
        history, eras = self._histories.get(key), self._eras[key[0]]
        found = answer(command, history, eras, self._until, self._grace)
        if found.flaw is not None:
            self._tell(key, found.flaw)
        return found.final

    def _tell(self, key: _Key, flaw: RuleBreach, change: Change | None = None) -> None:
        self._found.append(self._violation(key, flaw, change))

    def _violation(self, key: _Key, flaw: RuleBreach, change: Change | None = None) -> Violation:
        history = self._histories.get(key)
        known = tuple(history.changes) if history else ()
        misfit = (change,) if change is not None and change not in known else ()
        return Violation(flaw.kind, *key, flaw.detail, known + misfit)


def _flaw_between(before: Change | None, after: Change) -> RuleBreach | None:
    """What is wrong with two neighbours in a history, unless a change is missing between them."""
    if before is None:
        # Earlier changes may have been compacted away, but the first change has none.
        return misstep(NO_RECORD, after) if after.record.epoch.counter == 1 else None
    earlier, later = before.record.epoch, after.record.epoch
    if later.generation < earlier.generation:
        return RuleBreach(
            ViolationKind.GENERATION, "the generation goes back while the counter grows"
        )
    if later.counter > earlier.counter + 1 and not is_birth(after):
        return None
    return misstep(before.record, after)
