"""Places an unowned bundle on the better of two brokers; any broker may do so without the job.

take the broker that the job's plan proposes for the bundle, if there is one that was not tried yet
otherwise, of the job's candidates that were not tried yet:
  keep those with the fewest bundles of the bundle's anti-affinity group, then those with the fewest
  of its namespace where namespaces are spread evenly
  draw two of the less loaded ones
ask the script, which also counts what was placed since the hints: it takes the less loaded of the
  two that hold a lease and have got no other bundle of the group or namespace meanwhile
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from itertools import chain
from typing import Final, NamedTuple

import numpy as np

from agent.ports import HintReader, Store
from sinks.errors import Damaged
from trimtab.model import Epoch, namespace_of
from trimtab.ownership import Event
from trimtab.store.lookup import candidates_for, draw
from trimtab.store.spreading import UNCHECKED, Spread, narrow_spread, spread_of
from trimtab.wire.command import Command, CommandKind
from trimtab.wire.hints import Hints
from trimtab.wire.lookup import Cause
from trimtab.wire.ownership import Candidate, Refused, Transition, TransitionOutcome

HINTS_FOR_S: Final = 1.0
"""How long hints are reused. Longer: placement uses older loads; shorter: more reading, of at most
64 brokers for each isolation policy."""

LOADED_WITHIN_MS: Final = 30_000
"""The command's deadline. The claim itself ends when the broker reports that it serves, or dies."""

MOST_DRAWS: Final = 10
"""How often candidates are drawn before the bundle is left to the next attempt."""


class NoPlace(Exception):
    """No broker can get the bundle now."""

    def __init__(self, cause: Cause, says: str) -> None:
        super().__init__(says)
        self.cause = cause


class Drawn(NamedTuple):
    """One or two candidate brokers, and the load that one more bundle adds to either."""

    candidates: tuple[Candidate, ...]
    each: float
    tallies: dict[str, dict[str, int]]
    """As in `trimtab.wire.ownership.Transition`."""

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
        with self._lock:
            hints = self._newest()
        spread = self._spread(namespace_of(bundle), hints)
        proposed = hints.proposed.get(bundle)
        if proposed is not None and proposed not in besides:
            unchecked = dict.fromkeys(spread.tallies(proposed), UNCHECKED)
            return Drawn((Candidate(proposed, 0.0),), hints.each, {proposed: unchecked})
        candidates = candidates_for(spread.namespace, hints)
        untried = [candidate for candidate in candidates if candidate.broker not in besides]
        if not untried:
            why = f"none of {len(candidates)} took it" if candidates else "no broker may take it"
            raise NoPlace(Cause.NO_CANDIDATE, f"{bundle}: {why}")
        placed = self._hints.placed(self._cluster)
        tallies = {each.broker: spread.tallies(each.broker) for each in untried}
        named = sorted(set(chain.from_iterable(tallies.values())))
        records, tallied = (
            self._hints.count(self._cluster, spread.namespaces, named) if named else ({}, {})
        )
        fewest = narrow_spread(spread, untried, records, tallied)
        with self._lock:
            # A generator is not for several threads.
            drawn = draw(fewest, placed, hints.each, self._rng)
        seen = {each.broker: {t: tallied[t] for t in tallies[each.broker]} for each in drawn}
        return Drawn(drawn, hints.each, seen)

    def _spread(self, namespace: str, hints: Hints) -> Spread:
        try:
            group = self._hints.group_of(self._cluster, namespace)
        except Damaged as error:
            raise NoPlace(Cause.NO_HINTS, str(error)) from error
        name, members = group or (None, ())
        return spread_of(namespace, hints, name, members)

    def place(
        self, bundle: str, expect: Epoch, besides: Collection[str]
    ) -> tuple[Drawn, TransitionOutcome]:
        """Give the bundle to a broker other than ``besides``.

        Draws again if other lookups placed bundles of the same namespace or group meanwhile. Raises
        NoPlace and Closed.
        """
        for _ in range(MOST_DRAWS):
            drawn = self.draw(bundle, besides)
            outcome = self.claim(bundle, expect, drawn)
            if outcome.reason is not Refused.OVERTAKEN:
                break
        return drawn, outcome

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
            tallies=drawn.tallies,
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
