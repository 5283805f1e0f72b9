"""Two Redis servers, one a replica of the other, and what failovers and operators do with them.

A replica lacks the last writes of its master. A master that another has replaced may live on with
whoever is still connected to it, until it is made a replica of the new one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import Final

import numpy as np

from simulation.ownership.contents import Data
from simulation.ownership.network import Clock, Wire
from simulation.ownership.server import MemoryServer
from trimtab.wire.ownership import Change

_BEGUN_MS: Final = 1_800_000_000_000
_FARTHEST_MS: Final = 30_000
"""A clock that is farther off than this is set right by its next step."""
_LEFT_BEHIND_S: Final = 30.0
"""How long a replaced master lives on, the mean."""
_FOLLOWS_S: Final = 2.0
"""How soon a client that was turned away asks who the master is, the mean."""


class _Member:
    """A server with its own clock, and how it hears of its replica."""

    def __init__(
        self, clock: Clock, accepted: Callable[[str, Change], object], numbers: count[int]
    ) -> None:
        self._clock = clock
        self.jump_ms = 0
        self.has_replica = False
        """Whether the other is connected, however long ago it has acknowledged."""
        self.silent_since: int | None = None
        """By this server's clock; None: it acknowledges."""
        self.server = MemoryServer(self.now_ms, accepted, self._lags, numbers)

    def now_ms(self) -> int:
        return _BEGUN_MS + self.jump_ms + round(1000 * self._clock.now)

    def _lags(self) -> tuple[float, ...]:
        if not self.has_replica:
            return ()
        return (0.0 if self.silent_since is None else (self.now_ms() - self.silent_since) / 1000,)

    def hear(self) -> None:
        self.has_replica, self.silent_since = True, None

    def hear_nothing(self) -> None:
        if self.silent_since is None:
            self.silent_since = self.now_ms()


class Stores:
    """``wires`` are the clients' ways: each goes to the server that the client takes for the
    master."""

    def __init__(
        self,
        clock: Clock,
        rng: np.random.Generator,
        accepted: Callable[[str, Change], object],
        clusters: Sequence[str],
    ) -> None:
        numbers = count(1)
        self._clusters = clusters
        self._clock, self._rng = clock, rng
        self._members = [_Member(clock, accepted, numbers) for _ in range(2)]
        self._at = 0
        self.wires: list[Wire] = []
        self._snapshot: Data | None = None
        self._takeovers = 0
        self._members[1].server.demote()
        self._members[0].hear()

    @property
    def master(self) -> MemoryServer:
        """As Sentinels tell."""
        return self._members[self._at].server

    @property
    def servers(self) -> list[MemoryServer]:
        return [member.server for member in self._members]

    @property
    def _master(self) -> _Member:
        return self._members[self._at]

    @property
    def _other(self) -> _Member:
        return self._members[1 - self._at]

    @property
    def replicates(self) -> bool:
        """Whether the other server is a replica that follows the master."""
        return self._master.has_replica and self._master.silent_since is None

    def connect(self, wire: Wire) -> None:
        """Follow the master from now on, some time after having been turned away."""
        self.wires.append(wire)
        wire.turned_away = lambda: self._clock.later(
            self._soon(_FOLLOWS_S), lambda: self._lead(wire)
        )

    def disconnect(self, wire: Wire) -> None:
        self.wires.remove(wire)

    def _lead(self, wire: Wire) -> None:
        wire.server = self.master

    def _soon(self, mean: float) -> float:
        return float(self._rng.exponential(mean))

    # What breaks

    def restart(self, lost: int | None) -> None:
        """The master, in its place; a replica follows it again in a moment."""
        self.master.restart(lost)

    def flush(self) -> None:
        self.master.flush()

    def step_clock(self, seconds: float, *, masters: bool = True) -> None:
        """The master's, or that of the other server; somebody sets it right again later."""
        member = self._master if masters else self._other
        back = member.jump_ms > _FARTHEST_MS or member.jump_ms < -_FARTHEST_MS
        member.jump_ms = 0 if back else member.jump_ms + round(1000 * seconds)

    def keep_a_snapshot(self) -> None:
        self._snapshot = self.master.data.without(0)

    def restore_the_snapshot(self) -> bool:
        """Restart the master with what was kept long ago; False where nothing was."""
        if self._snapshot is None:
            return False
        self.master.promote(self._snapshot.without(0))
        return True

    def silence_the_replica(self) -> None:
        """The master hears nothing of it for a while; then it is back."""
        if not self.replicates:
            return
        member, takeovers = self._master, self._takeovers
        member.hear_nothing()

        def again() -> None:
            if self._takeovers == takeovers:
                member.hear()

        self._clock.later(self._soon(8.0), again)

    @property
    def counts_the_replica(self) -> bool:
        """Whether the master asks for the replica's acknowledgement, whichever cluster it is."""
        return all(self.master.of(cluster).opening.replicas > 0 for cluster in self._clusters)

    def fail_over(self, lost: int, *, lives_on: bool) -> bool:
        """Promote the replica, which lacks the last changes; False where there is none.

        The old master lives on for a while, or is down. Then it is made a replica.
        """
        if not self._master.has_replica:
            return False
        old, new = self._master, self._other
        old.hear_nothing()
        new.has_replica, new.silent_since = False, None
        new.server.promote(old.server.data.without(lost))
        old.server.is_down = not lives_on
        self._at = 1 - self._at
        self._takeovers += 1
        takeovers = self._takeovers
        for wire in self.wires:
            if self._rng.random() < 0.8:
                self._clock.later(self._soon(_FOLLOWS_S), lambda wire=wire: self._lead(wire))  # type: ignore[misc]
        self._clock.later(self._soon(_LEFT_BEHIND_S), lambda: self._resynchronise(takeovers))
        return True

    def _resynchronise(self, takeovers: int) -> None:
        """The server that was replaced becomes the master's replica, with the master's data."""
        if self._takeovers == takeovers:
            self._other.server.demote()
            self._other.has_replica = False
            self._master.hear()

    def heal(self) -> None:
        """Everything follows one master, which has a replica."""
        self._resynchronise(self._takeovers)
        self.master.is_down = False
        for wire in self.wires:
            self._lead(wire)
