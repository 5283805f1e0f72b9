"""A Redis for simulations: records, leases and streams in this process's memory.

It answers as the scripts do. It can be restarted, become a replica or a master, and lose its last
changes or all of them.
"""

from __future__ import annotations

from collections.abc import Iterable

from simulation.ownership.redis.gate_scripts import GateScripts
from simulation.ownership.redis.lease_script import LeaseScript
from simulation.ownership.redis.transition_script import TransitionScript
from trimtab.wire.command import Command
from trimtab.wire.ownership import Change, Record


class MemoryServer(LeaseScript, TransitionScript, GateScripts):
    """One Redis process with the scripts, and the streams that need none."""

    def waiting(self, cluster: str, broker: str) -> tuple[tuple[str, Command], ...]:
        """The commands that a broker has not acknowledged."""
        self._master(cluster)
        return self.of(cluster).commands.get(broker, ())

    def acknowledge(self, cluster: str, broker: str, ids: Iterable[str]) -> None:
        """Like `CommandStream.acknowledge`."""
        here, done = self._changing(cluster), set(ids)
        left = tuple(each for each in here.commands.get(broker, ()) if each[0] not in done)
        self._put(cluster, "commands", broker, left)

    def unrelayed(self, cluster: str) -> dict[str, Record]:
        """Like `RebuildSources.unrelayed`."""
        self.answers()
        # By entry, ascending: a bundle's last one counts.
        return {change.bundle: change.record for change in self.of(cluster).journal.values()}

    def take_journal(self, cluster: str, most: int) -> list[Change]:
        """Take the journal's oldest entries, as the relay carries them to Kafka."""
        here = self._changing(cluster)
        entries = [entry for entry, _ in zip(here.journal, range(most), strict=False)]
        changes = [here.journal[entry] for entry in entries]
        for entry in entries:
            self._put(cluster, "journal", entry, None)
        return changes
