"""Transitions on the simulated server, as the parts of lua/transition apply them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from simulation.ownership.redis.process import MemoryProcess
from simulation.ownership.redis.rules import FREE, Judgement, Standing, judge
from sinks.errors import Closed
from sinks.redis.ownership_store import BatchOutcome
from trimtab.ownership import (
    CLOCK_MARGIN_MS,
    Event,
    State,
)
from trimtab.wire.ownership import Change, Record, Refused, Transition, TransitionOutcome

_LONGEST_STREAM: Final = 10_000


class TransitionScript(MemoryProcess):
    """The script that changes records; `simulation.ownership.redis.rules` judges."""

    def apply_batch(  # noqa: PLR0913 - a batch, whose it is, and at what time
        self,
        cluster: str,
        transitions: Sequence[Transition],
        *,
        generation: int,
        query_id: str,
        batch: int,
        server_ms: int | None = None,
    ) -> BatchOutcome:
        """Like `OwnershipStore.apply_batch`."""
        here = self._writable(cluster)
        if generation > here.opening.generation:
            raise Closed(f"it is open to generation {here.opening.generation}")
        self._require_not_fenced(here, generation)
        last, outcomes = here.applied.get(query_id, (-1, ()))
        same = [(o.id, o.bundle) for o in outcomes] == [(t.id, t.bundle) for t in transitions]
        if last == batch and same:
            return BatchOutcome(outcomes, repeated=True)
        if last >= batch:
            return BatchOutcome(tuple(map(_older, transitions)))
        outcomes = tuple(self._apply(cluster, each, server_ms) for each in transitions)
        self._put(cluster, "applied", query_id, (batch, outcomes))
        return BatchOutcome(outcomes)

    def apply(
        self, cluster: str, transition: Transition, server_ms: int | None = None
    ) -> TransitionOutcome:
        """Like `OwnershipStore.apply`."""
        return self.apply_all(cluster, [transition], server_ms)[0]

    def apply_all(
        self, cluster: str, transitions: Sequence[Transition], server_ms: int | None = None
    ) -> tuple[TransitionOutcome, ...]:
        """Like `OwnershipStore.apply_all`."""
        if not self.knows_scripts:
            self._master(cluster)
            raise Closed("no job of this version has loaded the scripts")
        self._writable(cluster)
        return tuple(self._apply(cluster, each, server_ms) for each in transitions)

    def _apply(self, cluster: str, asked: Transition, server_ms: int | None) -> TransitionOutcome:
        here = self.of(cluster)
        old = here.records.get(asked.bundle, FREE)
        if old.by == asked.id:
            fell = old.state is State.QUARANTINED and asked.event is not Event.QUARANTINE
            return _outcome(asked, Refused.QUARANTINED if fell else None, here.records)
        standing = Standing(
            here.records,
            here.opening.generation,
            self.now_ms(),
            lambda broker: self.alive(cluster, broker) or self._left(here, broker) > 0,
            here.placed,
            lambda request: self._speaks_for(cluster, request),
            server_ms is not None and abs(server_ms - self.now_ms()) <= CLOCK_MARGIN_MS,
            lambda broker: here.leases.get(broker, (0, 0))[0] != 0,
            here.tallies,
        )
        judged = judge(asked, standing)
        for bundle, record in judged.written.items():
            self._write(Change(cluster=cluster, bundle=bundle, event=judged.event, record=record))
        if judged.refused is None:
            self._send(cluster, asked, judged)
        return _outcome(asked, judged.refused, here.records)

    def _speaks_for(self, cluster: str, asked: Transition) -> bool:
        session, until = self.of(cluster).leases.get(asked.actor or "", (0, 0))
        return until > self.now_ms() and session == asked.session

    def _send(self, cluster: str, asked: Transition, judged: Judgement) -> None:
        here, after = self.of(cluster), judged.written[asked.bundle]
        deadline = self.now_ms() + asked.within_ms if asked.within_ms else 0
        for command in asked.commands:
            if not asked.candidates or command.broker == after.owner:
                stamped = command.stamped(after.epoch, self.now_ms(), deadline)
                entry = f"{next(self._numbers)}-0", stamped
                waiting = (*here.commands.get(command.broker, ()), entry)
                self._put(cluster, "commands", command.broker, waiting[-_LONGEST_STREAM:])
        if asked.candidates:
            owner = after.owner or ""
            self._put(cluster, "placed", owner, here.placed.get(owner, 0) + 1)
            for tally in asked.tallies.get(owner, {}):
                self._put(cluster, "tallies", tally, here.tallies.get(tally, 0) + 1)


def _outcome(
    asked: Transition, refused: Refused | None, records: Mapping[str, Record]
) -> TransitionOutcome:
    named = (*asked.children, *(() if asked.neighbour is None else asked.neighbour[:1]))
    return TransitionOutcome(
        id=asked.id,
        bundle=asked.bundle,
        accepted=refused is None,
        reason=refused,
        record=records.get(asked.bundle),
        others={bundle: records[bundle] for bundle in named if bundle in records},
    )


def _older(asked: Transition) -> TransitionOutcome:
    return TransitionOutcome(
        id=asked.id, bundle=asked.bundle, accepted=False, reason=Refused.OLDER_BATCH
    )
