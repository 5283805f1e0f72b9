"""Two Redis servers, one a replica of the other, with failovers and operators' actions.

A replica lacks the last writes of its master. A master that another has replaced may keep running
with the clients that are still connected to it, until it is made a replica of the new one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import Final

import numpy as np

from simulation.ownership.network import Clock, Wire
from simulation.ownership.redis.contents import Data
from simulation.ownership.redis.process import Acknowledged, Replication
from simulation.ownership.redis.server import MemoryServer
from trimtab.wire.ownership import Change

_BEGUN_MS: Final = 1_800_000_000_000
_FARTHEST_MS: Final = 30_000
"""The next step of a clock that is further off than this sets it right."""
_LEFT_BEHIND_S: Final = 30.0
"""The mean time that a replaced master keeps running."""
_APART: Final = 0.4
"""The part of the clients that stay with a master that hangs while it is replaced."""
_FOLLOWS_S: Final = 2.0
"""The mean time until a client that was turned away asks who the master is."""


class _Member:
    """A server with its own clock, and its view of its replica."""

    def __init__(
        self, clock: Clock, accepted: Callable[[str, Change], object], numbers: count[int]
    ) -> None:
        self._clock = clock
        self.jump_ms = 0
        self.has_replica = False
        """Whether the other server is connected, however old its last acknowledgement is."""
        self.silent_since: int | None = None
        """Since when, by this server's clock; None: the replica acknowledges."""
        self._heard = 0
        """The offset that the replica has acknowledged, while it is silent."""
        self.server = MemoryServer(self.now_ms, accepted, self._replication, numbers)

    def now_ms(self) -> int:
        return _BEGUN_MS + self.jump_ms + round(1000 * self._clock.now)

    def _replication(self) -> Replication:
        # Writes never stop; any number that only grows will do.
        offset = round(1000 * self._clock.now)
        if not self.has_replica:
            return Replication(offset)
        if self.silent_since is None:
            return Replication(offset, (Acknowledged(offset, 0.0),))
        lag_s = (self.now_ms() - self.silent_since) / 1000
        return Replication(offset, (Acknowledged(self._heard, lag_s),))

    def hear(self) -> None:
        self.has_replica, self.silent_since = True, None

    def hear_nothing(self) -> None:
        if self.silent_since is None:
            self.silent_since = self.now_ms()
            self._heard = round(1000 * self._clock.now)

    def read_what_waited(self) -> None:
        """After a hang the lag of the last acknowledgement counts from now, when it is read."""
        if self.silent_since is not None:
            self.silent_since = self.now_ms()


class Stores:
    """The two servers; ``wires`` are the clients' connections, each to the server that the client
    believes is the master."""

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
        self._apart: list[Wire] = []
        """Connections that reach only the server that was replaced."""
        self._snapshot: Data | None = None
        self._takeovers = 0
        self._members[1].server.demote()
        self._members[0].hear()

    @property
    def master(self) -> MemoryServer:
        """The master that Sentinels name."""
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
        """Make the wire follow the master from now on, some time after it was turned away."""
        self.wires.append(wire)
        wire.turned_away = lambda: self._clock.later(
            self._soon(_FOLLOWS_S), lambda: self._lead(wire)
        )

    def disconnect(self, wire: Wire) -> None:
        self.wires.remove(wire)

    def _lead(self, wire: Wire) -> None:
        if wire not in self._apart:
            wire.server = self.master

    def _soon(self, mean: float) -> float:
        return float(self._rng.exponential(mean))

    # Faults

    def restart(self, lost: int | None) -> None:
        """Restart the master in its place; a replica soon follows it again."""
        self.master.restart(lost)

    def flush(self) -> None:
        self.master.flush()

    def delete_records(self) -> None:
        for cluster in self._clusters:
            self.master.delete_records(cluster)

    def delete_lease(self, cluster: str, broker: str) -> None:
        self.master.delete_lease(cluster, broker)

    def delete_commands(self, cluster: str, broker: str) -> None:
        self.master.delete_commands(cluster, broker)

    def step_clock(self, seconds: float, *, masters: bool = True) -> None:
        """Step the clock of the master or of the other server; it is set right again later."""
        member = self._master if masters else self._other
        back = member.jump_ms > _FARTHEST_MS or member.jump_ms < -_FARTHEST_MS
        member.jump_ms = 0 if back else member.jump_ms + round(1000 * seconds)

    def keep_a_snapshot(self) -> None:
        self._snapshot = self.master.data.without(0)

    def restore_the_snapshot(self) -> bool:
        """Restart the master with old data that was kept; False if none was kept."""
        if self._snapshot is None:
            return False
        self.master.promote(self._snapshot.without(0))
        return True

    def silence_the_replica(self) -> None:
        """Withhold the replica's acknowledgements from the master for some time."""
        if not self.replicates:
            return
        member, takeovers = self._master, self._takeovers
        member.hear_nothing()

        def again() -> None:
            if self._takeovers == takeovers:
                member.hear()

        self._clock.later(self._soon(8.0), again)

    @property
    def knows_the_replica(self) -> bool:
        """Whether the master has noted that it has a replica, for every cluster."""
        here = [self.master.of(cluster) for cluster in self._clusters]
        history = self.master.history
        return all(c.opening.replicas or c.noted_replicas(history).online for c in here)

    def fail_over(
        self, lost: int, *, lives_on: bool, parts: bool = False, hangs_s: float = 0.0
    ) -> bool:
        """Promote the replica, which lacks the last changes; False if there is none.

        The old master keeps running for a while, or is down. Then it is made a replica. ``parts``:
        it sees its replica close the connection; otherwise the replica just falls silent.
        ``hangs_s``: it hangs for so long first, and takes acknowledgements that waited for new.
        """
        if not self._master.has_replica:
            return False
        old, new = self._master, self._other
        old.hear_nothing()
        old.has_replica = not parts
        new.has_replica, new.silent_since = False, None
        new.server.promote(old.server.data.without(lost))
        old.server.is_down = not lives_on or hangs_s > 0
        self._at = 1 - self._at
        self._takeovers += 1
        takeovers = self._takeovers

        def wake() -> None:
            if self._takeovers == takeovers:
                old.server.is_down = False
                old.read_what_waited()

        self._apart = []
        if hangs_s > 0:
            # The network is parted too, or a client that waits for the master would find the other.
            self._apart = [wire for wire in self.wires if self._rng.random() < _APART]
            self._clock.later(hangs_s, wake)
        for wire in self.wires:
            if self._rng.random() < 0.8:
                self._clock.later(self._soon(_FOLLOWS_S), lambda wire=wire: self._lead(wire))  # type: ignore[misc]
        self._clock.later(self._soon(_LEFT_BEHIND_S), lambda: self._resynchronise(takeovers))
        return True

    def _resynchronise(self, takeovers: int) -> None:
        """Make the replaced server the master's replica, with the master's data."""
        if self._takeovers == takeovers:
            self._apart = []
            self._other.server.demote()
            self._other.has_replica = False
            self._master.hear()

    def heal(self) -> None:
        """Make every client follow one master, which has a replica."""
        self._resynchronise(self._takeovers)
        self.master.is_down = False
        for wire in self.wires:
            self._lead(wire)
