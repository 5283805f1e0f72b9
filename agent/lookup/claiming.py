"""Places an unowned bundle on the better of two brokers; any broker may do so without the job.

take the broker that the job's plan proposes for the bundle, if any, and it was not tried before
otherwise draw two of the job's candidates that were not tried before
ask the script: it takes the live one with less load, including bundles placed since the hints
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from typing import Final, NamedTuple

import numpy as np

from agent.ports import HintReader, Store
from sinks.errors import Damaged
from trimtab.model import Epoch, namespace_of
from trimtab.ownership import Event
from trimtab.store.lookup import candidates_for, draw
from trimtab.wire.command import Command, CommandKind
from trimtab.wire.hints import Hints
from trimtab.wire.lookup import Cause
from trimtab.wire.ownership import Candidate, Transition, TransitionOutcome

HINTS_FOR_S: Final = 1.0
"""How long hints are reused. Longer: placement uses older loads; shorter: more reading, of at most
64 brokers for each of 1,000 namespaces."""

LOADED_WITHIN_MS: Final = 30_000
"""The command's deadline. The claim itself ends when the broker reports that it serves, or dies."""


class NoPlace(Exception):
    """No broker can get the bundle now."""

    def __init__(self, cause: Cause, says: str) -> None:
        super().__init__(says)
        self.cause = cause


class Drawn(NamedTuple):
    """One or two candidate brokers, and the load that one more bundle adds to either."""

    candidates: tuple[Candidate, ...]
    each: float

    @property
    def brokers(self) -> list[str]:
        return [candidate.broker for candidate in self.candidates]


class Claims:
    """The claims of one broker; any number of threads may use it."""

    def __init__(  # noqa: PLR0913 - its identity, its links, its randomness and clocks
        self,
        cluster: str,
        broker: str,
        store: Store,
        hints: HintReader,
        rng: np.random.Generator,
        clock: Callable[[], float],
        server_ms: Callable[[], int | None],
    ) -> None:
        """``server_ms``: Redis's time by a clock of this machine, None if it is uncertain."""
        self._cluster, self._broker = cluster, broker
        self._store, self._hints = store, hints
        self._rng, self._clock, self._server_ms = rng, clock, server_ms
        self._lock = threading.Lock()
        self._known: Hints | None = None
        self._read_at = 0.0

    def draw(self, bundle: str, besides: Collection[str]) -> Drawn:
        """Draw candidates for the bundle, none of ``besides``; raises NoPlace."""
        placed = self._hints.placed(self._cluster)
        with self._lock:
            hints = self._newest()
            proposed = hints.proposed.get(bundle)
            if proposed is not None and proposed not in besides:
                return Drawn((Candidate(proposed, 0.0),), hints.each)
            candidates = candidates_for(namespace_of(bundle), hints)
            untried = [candidate for candidate in candidates if candidate.broker not in besides]
            if not untried:
                why = (
                    f"none of {len(candidates)} took it" if candidates else "no broker may take it"
                )
                raise NoPlace(Cause.NO_CANDIDATE, f"{bundle}: {why}")
            return Drawn(draw(untried, placed, hints.each, self._rng), hints.each)

    def claim(self, bundle: str, expect: Epoch, drawn: Drawn) -> TransitionOutcome:
        """Let the script give it to one of them; raises Closed.

        A repeat, perhaps for others, is harmless: only one request of this name is accepted.
        """
        epoch = f"{expect.generation}.{expect.counter}"
        name = f"{self._broker}/{bundle}/{epoch}/{Event.ASSIGN.value}"
        commands = tuple(
            Command(
                id=f"{name}/{CommandKind.OWN.value}",
                cluster=self._cluster,
                broker=broker,
                kind=CommandKind.OWN,
                bundle=bundle,
                reason="lookup",
            )
            for broker in drawn.brokers
        )
        request = Transition(
            id=name,
            bundle=bundle,
            event=Event.ASSIGN,
            expect=expect,
            actor=self._broker,
            candidates=drawn.candidates,
            each=drawn.each,
            commands=commands,
            within_ms=LOADED_WITHIN_MS,
        )
        return self._store.apply(self._cluster, request, self._server_ms())

    def _newest(self) -> Hints:
        now = self._clock()
        if self._known is None or now >= self._read_at + HINTS_FOR_S:
            try:
                self._known, self._read_at = self._hints.read(self._cluster), now
            except Damaged as error:
                raise NoPlace(Cause.NO_HINTS, str(error)) from error
        if self._known is None:
            raise NoPlace(Cause.NO_HINTS, f"{self._cluster}: no round has been held")
        return self._known
