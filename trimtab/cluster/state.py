"""All that is held of one cluster while a batch works on it.

State is reached through mappings, so that the same code runs on Spark's MapState and on dicts
(replay, tests): broker to packed Snapshot, namespace to its packed records.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, field

from trimtab.cluster.export import ClusterExport
from trimtab.cluster.intents import resolve_settings
from trimtab.explaining.witness import Witness
from trimtab.intake.expiry import is_forgotten
from trimtab.settings import Settings
from trimtab.state.memory import Memory
from trimtab.wire.columns import pack, unpack
from trimtab.wire.ownership import Record


@dataclass(slots=True)
class ClusterState:
    """``memory`` is replaced, never changed."""

    name: str
    snapshots: MutableMapping[str, bytes]
    namespaces: MutableMapping[str, bytes]
    memory: Memory
    defaults: Settings
    aside: MutableMapping[str, bytes] = field(default_factory=dict)
    """Broker to its Snapshot where rounds are not to see it and operator ① still goes on from it:
    read by exports alone."""
    explains: bool = True
    """Whether rounds tell the sinks why; their commands say so in any case."""
    witness: Witness | None = None
    """Of the last round that was held, for whoever asks why."""

    @property
    def settings(self) -> Settings:
        """The job's settings with the cluster's own changes on top."""
        return resolve_settings(self.memory, self.defaults)[0]

    @property
    def interval_ms(self) -> int:
        """Between rounds; 0 means one in every batch that changed a snapshot."""
        return round(self.settings.round.interval * 1000)

    def records(self, namespace: str) -> dict[str, Record]:
        """The records of a namespace, by bundle."""
        packed = self.namespaces.get(namespace)
        return unpack(packed, dict[str, Record]) if packed else {}

    def set_aside(self, broker: str) -> None:
        """Let no round see what is held of a broker."""
        packed = self.snapshots.pop(broker, None)
        if packed is not None:
            self.aside[broker] = packed

    def drop_forgotten(self, now_ms: int) -> None:
        """Delete what was set aside of brokers that operator ① forgets."""
        for broker, packed in list(self.aside.items()):
            if is_forgotten(packed, now_ms):
                del self.aside[broker]

    def held(self) -> ClusterExport:
        """All of it, and with it what operator ① holds of the cluster's brokers."""
        return ClusterExport(
            memory=pack(self.memory),
            snapshots=dict(self.snapshots.items()),
            aside=dict(self.aside.items()),
            namespaces=dict(self.namespaces.items()),
        )

    def fingerprint(self, *mappings: Mapping[str, bytes]) -> str:
        """Hash of everything ② decides by: equal in a replay of the same batches."""
        digest = hashlib.blake2b(pack(self.memory), digest_size=8)
        for mapping in mappings:
            for key, value in sorted(mapping.items()):
                digest.update(key.encode())
                digest.update(value)
        return digest.hexdigest()
