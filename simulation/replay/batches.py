"""Runs recorded batches again without Spark: the same functions on plain dicts.

for each batch of one query, in order:
  fold the load reports it read into their brokers' snapshots
  give each cluster its snapshots, intents and changes of ownership
  run the rounds whose timer was due at the batch's timestamp
The result is what the job decided and remembered then. A replay begins with a query's first batch,
or with the one after an export.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

import msgspec

from sources.arrivals import Stored, take_reports
from sources.records import Record, Report, report_of, row_of
from trimtab.cluster.export import ClusterExport
from trimtab.cluster.operator import Cluster
from trimtab.cluster.state import hash_state
from trimtab.intake.snapshot import IntakeSettings
from trimtab.model import parse_subject
from trimtab.settings import Settings
from trimtab.state.memory import Memory, set_apart
from trimtab.wire import keys
from trimtab.wire.columns import pack, unpack
from trimtab.wire.rounds import BatchRecord, RoundRecord
from trimtab.wire.rows import Row, Tag

_TAGS = {keys.CONTROL: Tag.INTENT, keys.OWNERSHIP: Tag.CHANGE}


class Contradiction(ValueError):
    """Two records of one batch disagree: the job was not deterministic, or the topic is mixed."""


@dataclass(slots=True)
class Replay:
    """The state of both operators; call ``run`` for the batches of one query in order."""

    intake: IntakeSettings
    defaults: Settings
    stored: Stored = field(default_factory=lambda: Stored({}, {}))
    """Operator ①'s state."""
    clusters: dict[str, Cluster] = field(default_factory=dict)
    """Operator ②, by cluster."""
    followed: set[str] | None = None
    """Clusters whose records count; None: all. No cluster depends on another."""
    made: Callable[..., Cluster] = Cluster
    """Creates one of ``clusters``."""
    explains: bool = False
    """Whether rounds emit explanation rows; that takes time, and a replay does not read them."""

    def start(self, intake: IntakeSettings, defaults: Settings) -> None:
        """Continue like a job that was started with these settings."""
        self.intake, self.defaults = intake, defaults
        for cluster in self.clusters.values():
            cluster.defaults = defaults

    def restore(self, name: str, held: ClusterExport) -> None:
        """Follow a cluster from its state after the batch that ran last."""
        for stored, known in zip(
            self.stored, (held.latest, {**held.snapshots, **held.aside}), strict=True
        ):
            for subject in [each for each in stored if parse_subject(each)[0] == name]:
                del stored[subject]
            stored.update({f"{name}/{broker}": packed for broker, packed in known.items()})
        self.clusters[name] = self.made(
            name,
            dict(held.snapshots),
            dict(held.namespaces),
            unpack(held.memory, Memory),
            self.defaults,
            dict(held.aside),
            dict(held.latest),
            explains=self.explains,
        )
        self.followed = {*(self.followed or ()), name}

    def run(self, at: int, records: Iterable[Record]) -> list[Row]:
        """Run one batch, given its timestamp and records; returns the rows for the sinks."""
        rows = self._read(at, records)
        out: list[Row] = []
        for name in sorted(rows):
            taken, _ = _loaded(self._cluster(name)).take(rows[name], at)
            out += taken
        # Spark expires timers after the input, including those due right now.
        for cluster in list(self.clusters.values()):
            if 0 < cluster.memory.due_ms <= at:
                out += _loaded(cluster).wake(at)[0]
        return out

    def fingerprint(self, cluster: str) -> str:
        """Hash of the present state of a cluster."""
        state = self._cluster(cluster)
        rest, learnt = set_apart(state.memory)
        held = state.snapshots, state.latest, state.namespaces
        return hash_state(rest, pack(learnt), *held)

    def _read(self, at: int, records: Iterable[Record]) -> dict[str, list[Row]]:
        reports: dict[tuple[str, str], list[Report]] = defaultdict(list)
        rows: dict[str, list[Row]] = defaultdict(list)
        for record in records:
            if record.topic == keys.LOAD_REPORTS:
                subject, report = report_of(record)
                if self._follows(subject[0]):
                    reports[subject].append(report)
            else:
                row = row_of(record, _TAGS[record.topic])
                if self._follows(row.cluster):
                    rows[row.cluster].append(row)
        for subject, taken in reports.items():
            said = take_reports(subject, taken, self.stored, self.intake, at)
            for row in said.rows:
                rows[row.cluster].append(row)
        return rows

    def _follows(self, cluster: str) -> bool:
        return self.followed is None or cluster in self.followed

    def _cluster(self, name: str) -> Cluster:
        if name not in self.clusters:
            self.clusters[name] = self.made(
                name, {}, {}, Memory(), self.defaults, explains=self.explains
            )
        return self.clusters[name]


def _loaded(cluster: Cluster) -> Cluster:
    """The cluster as the job loads it for each call: its memory's mappings are in key order, and
    so are sums over them, which affects the last bit of a floating-point number."""
    cluster.memory = unpack(pack(cluster.memory), Memory)
    return cluster


def rounds_of(rows: Iterable[Row]) -> dict[str, RoundRecord]:
    """The rounds among a batch's rows, by cluster: a batch holds at most one for each."""
    decoded = (msgspec.json.decode(r.payload, type=RoundRecord) for r in rows if r.tag == Tag.ROUND)
    return {record.cluster: record for record in decoded}


def distinct(recorded: Iterable[BatchRecord]) -> Iterator[BatchRecord]:
    """Yield each batch once and in order; a batch that Spark repeated was recorded again.

    Raises Contradiction if a repetition differs from the first run in more than its generation,
    settings and exports.
    """
    known: dict[tuple[str, int], BatchRecord] = {}
    for record in recorded:
        key = (record.query, record.batch)
        known[key] = require_agreement(known[key], record) if key in known else record
    yield from (known[key] for key in sorted(known))


def require_agreement(first: BatchRecord, again: BatchRecord) -> BatchRecord:
    """The repetition of a batch, from whose state the job continued; raises Contradiction."""
    # The job may have been restarted in between with other settings, and export by those.
    settings = again.settings or first.settings
    said = msgspec.structs.replace(first, settings=settings, exported=again.exported)
    if msgspec.structs.replace(again, generation=first.generation, settings=settings) != said:
        raise Contradiction(f"batch {again.batch} of query {again.query} was recorded twice")
    return said
