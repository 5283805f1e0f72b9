"""The state of one cluster while a batch works on it.

Mappings give access to it, so that the same code runs on Spark's MapState and on dicts (replay,
tests): broker to packed Snapshot and to its latest figures, namespace to its packed records.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, MutableMapping, Set
from dataclasses import dataclass, field, replace
from typing import Final

from trimtab.cluster.export import ClusterExport
from trimtab.cluster.intents.settings import resolve_settings
from trimtab.cluster.outcomes import Told
from trimtab.explaining.witness import Witness
from trimtab.intake.expiry import is_forgotten
from trimtab.intake.latest import join
from trimtab.settings import Settings
from trimtab.state.memory import Learnt, Memory, put_together
from trimtab.wire.columns import inflate, pack, pack_small, unpack
from trimtab.wire.intent_outcome import IntentOutcome
from trimtab.wire.ownership import Record

_HEX: Final = 16
"""Digits of a state's hash, which records of rounds carry."""


@dataclass(slots=True)
class ClusterState:
    """A cluster's state; ``memory`` is replaced, never changed."""

    name: str
    snapshots: MutableMapping[str, bytes]
    namespaces: MutableMapping[str, bytes]
    memory: Memory
    defaults: Settings
    aside: MutableMapping[str, bytes] = field(default_factory=dict)
    """Broker to a Snapshot that rounds must not see but operator ① still continues from; only
    exports read it."""
    latest: MutableMapping[str, bytes] = field(default_factory=dict)
    """Broker to its packed Latest, where that is newer than its snapshot."""
    explains: bool = True
    """Whether rounds send explanations to the sinks; their commands carry them in any case."""
    outcomes: list[IntentOutcome] = field(default_factory=list)
    """What this batch has made known of intents."""
    witness: Witness | None = None
    """What the last round left for explanations on request."""
    recall: Callable[[], Learnt] | None = None
    """Reads what the rounds have learnt; None once ``memory`` has it."""
    learnt: bytes | None = None
    """What the last round has learnt, packed; None if this batch has held none."""

    @property
    def settings(self) -> Settings:
        """The job's settings with the cluster's own changes on top."""
        return resolve_settings(self.memory, self.defaults)[0]

    @property
    def interval_ms(self) -> int:
        """Time between rounds; 0 means one in every batch that changed a snapshot."""
        return round(self.settings.round.interval * 1000)

    def records(self, namespace: str) -> dict[str, Record]:
        """The records of a namespace, by bundle."""
        packed = self.namespaces.get(namespace)
        return unpack(packed, dict[str, Record]) if packed else {}

    def brokers(self) -> set[str]:
        """Every broker that reported, owns a bundle, is lost or draining; reads all records."""
        liveness = self.memory.liveness
        known = {*self.memory.appended, *self.aside, *liveness.gone, *liveness.draining}
        # Not values(): those cost Spark a round trip to the JVM each.
        for _, packed in self.namespaces.items():
            records = unpack(packed, dict[str, Record]).values()
            known |= {record.owner for record in records if record.owner is not None}
        return known

    def set_aside(self, brokers: Set[str]) -> None:
        """Hide brokers' snapshots from rounds, as if they had not reported."""
        for broker in brokers:
            packed, latest = self.snapshots.pop(broker, None), self.latest.pop(broker, None)
            if packed is not None:
                self.aside[broker] = join(packed, latest)
        appended = {b: ms for b, ms in self.memory.appended.items() if b not in brokers}
        self.memory = replace(self.memory, appended=appended)

    def tell(self, told: Told) -> None:
        """Keep outcomes of intents for this batch's rows, and the memory that has them."""
        self.memory = told.memory
        self.outcomes += told.outcomes

    def drop_forgotten(self, now_ms: int) -> None:
        """Delete the set-aside snapshots of brokers that operator ① forgets."""
        for broker, packed in list(self.aside.items()):
            if is_forgotten(packed, now_ms):
                del self.aside[broker]

    def recall_learnt(self) -> None:
        """Load what rounds have learnt into ``memory``, only if needed: most batches hold no round,
        and in a large fleet it is a hundred megabytes."""
        if self.recall is not None:
            self.memory, self.recall = put_together(self.memory, self.recall()), None

    def held(self) -> ClusterExport:
        """An export of all state, including what operator ① holds for the cluster's brokers."""
        self.recall_learnt()
        return ClusterExport(
            memory=pack_small(self.memory),
            snapshots=dict(self.snapshots.items()),
            aside=dict(self.aside.items()),
            namespaces=dict(self.namespaces.items()),
            latest=dict(self.latest.items()),
        )


def hash_state(rest: Memory, learnt: bytes, *mappings: Mapping[str, bytes]) -> str:
    """Hash of everything that ② decides on; equal in a replay of the same batches. ``rest`` is the
    memory without what rounds have learnt, and that is packed: a round stores the same bytes."""
    # Servers' processors have instructions for it; of a million bundles it is 300 MB.
    digest = hashlib.sha256(pack(rest))
    digest.update(learnt)
    for mapping in mappings:
        for key, value in sorted(mapping.items()):
            digest.update(key.encode())
            digest.update(inflate(value))
    return digest.hexdigest()[:_HEX]
