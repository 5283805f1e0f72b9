"""Turns a broker's records on trimtab.load-reports into arrivals, a snapshot and dead letters.

Operator ① and replays use the same functions.
"""

from __future__ import annotations

from collections.abc import Iterable, MutableMapping, Sequence
from typing import Final, NamedTuple, Protocol

import msgspec

from trimtab.intake.expiry import is_forgotten, look_ms
from trimtab.intake.fold import Arrival, Dropped, fold_latest
from trimtab.intake.latest import Latest, latest_of
from trimtab.intake.snapshot import IntakeSettings, Snapshot
from trimtab.wire import keys
from trimtab.wire.columns import pack, pack_small, unpack
from trimtab.wire.reports.decode import decode
from trimtab.wire.reports.poison import Poison, PoisonReport
from trimtab.wire.rows import HEAD, DeadLetter, Row, Tag, brief, head_of

SIZE_LIMIT: Final = 1 << 20
"""Most bytes of a report; of a larger one only the first HEAD bytes are kept."""

NO_SUBJECT: Final = ("", "")
"""Cluster and broker of a record whose key is invalid."""

_HEADER_DIGITS: Final = 18
"""More digits would not fit the state's 64 bits."""


class ReportRow(Protocol):
    """A record of trimtab.load-reports, as `sources.records.report_of` makes it."""

    @property
    def value(self) -> bytes | bytearray:
        """The whole value, or the first HEAD bytes of one above SIZE_LIMIT."""

    @property
    def size(self) -> int: ...

    @property
    def key(self) -> bytes | bytearray | None:
        """The key, only if it is not cluster/broker."""

    @property
    def session(self) -> bytes | bytearray | None: ...

    @property
    def sequence(self) -> bytes | bytearray | None: ...

    @property
    def partition(self) -> int: ...

    @property
    def offset(self) -> int: ...

    @property
    def appended_ms(self) -> int: ...


class Stored(NamedTuple):
    """What is stored of brokers, by ``cluster/broker``; both are read and written."""

    latest: MutableMapping[str, bytes]
    """Packed Latest; a snapshot of an earlier version has none."""
    snapshots: MutableMapping[str, bytes]
    """Packed Snapshot, as of when its bundles were last taken."""


class Taken(NamedTuple):
    """The result of a batch's reports of one broker."""

    rows: list[Row]
    """Output rows."""
    look_ms: int
    """When to check whether the broker is forgotten (batch timestamp); 0: as set before."""


def take_reports(
    subject: tuple[str, str],
    rows: Iterable[ReportRow],
    stored: Stored,
    settings: IntakeSettings,
    now_ms: int,
) -> Taken:
    """Take a batch of one broker's reports; ``now_ms`` is the batch timestamp."""
    arrivals, letters = sift(subject, rows)
    if not arrivals:
        return Taken(letters, 0)
    taken = take_arrivals(subject, arrivals, stored, settings, now_ms)
    return taken._replace(rows=letters + taken.rows)


def take_arrivals(
    subject: tuple[str, str],
    arrivals: Sequence[Arrival],
    stored: Stored,
    settings: IntakeSettings,
    now_ms: int,
) -> Taken:
    """`take_reports` of reports that are valid; at least one."""
    cluster, broker = subject
    name = f"{cluster}/{broker}"
    before = _known(name, stored, now_ms)

    def recall() -> Snapshot:
        return unpack(stored.snapshots[name], Snapshot)

    latest, snapshot, dropped = fold_latest(before, recall, broker, arrivals, settings)
    tag, payload = Tag.LATEST, b""
    if latest is not None and latest is not before:
        stored.latest[name] = payload = pack(latest)
    if snapshot is not None:
        tag = Tag.SNAPSHOT
        stored.snapshots[name] = payload = pack_small(snapshot)
    duplicate = sum(verdict is Dropped.DUPLICATE for _, verdict in dropped)
    row = Row(
        cluster=cluster,
        tag=tag,
        subject=broker,
        payload=payload,
        appended_ms=latest.appended_ms if latest else 0,
        accepted=len(arrivals) - len(dropped),
        duplicate=duplicate,
        old=len(dropped) - duplicate,
    )
    return Taken([row], _look(before, latest))


def _known(name: str, stored: Stored, now_ms: int) -> Latest | None:
    """The broker's latest figures, unless it is forgotten."""
    packed = stored.latest.get(name)
    if packed is not None:
        return None if is_forgotten(packed, now_ms) else unpack(packed, Latest)
    whole = stored.snapshots.get(name)
    if whole is None or is_forgotten(whole, now_ms):
        return None
    return latest_of(unpack(whole, Snapshot))


def _look(before: Latest | None, after: Latest | None) -> int:
    if after is None:
        return 0
    look = look_ms(after.appended_ms)
    return 0 if before is not None and look_ms(before.appended_ms) == look else look


def sift(subject: tuple[str, str], rows: Iterable[ReportRow]) -> tuple[list[Arrival], list[Row]]:
    """Separate valid reports of a broker from the others, which become dead letters."""
    arrivals, letters = list[Arrival](), list[Row]()
    for row in rows:
        try:
            if subject == NO_SUBJECT:
                raise PoisonReport(
                    Poison.KEY,
                    "the Kafka key is not cluster/broker, in printable ASCII without braces",
                )
            arrivals.append(arrival_of(row))
        except PoisonReport as error:
            letters.append(_dead_letter(subject, row, error))
    return arrivals, letters


def arrival_of(row: ReportRow) -> Arrival:
    """The checked report of a row; raises PoisonReport.

    Without headers the broker's start orders its sessions and the Kafka offset its reports.
    """
    if row.size > SIZE_LIMIT:
        raise PoisonReport(Poison.SIZE, f"{row.size} bytes, the limit is {SIZE_LIMIT}")
    session, sequence = _whole(row.session), _whole(row.sequence)
    report = decode(bytes(row.value))
    return Arrival(
        appended_ms=row.appended_ms,
        session=report.start_ms if session is None else session,
        sequence=row.offset if sequence is None else sequence,
        report=report,
    )


def _whole(header: bytes | bytearray | None) -> int | None:
    if header is None:
        return None
    if not (header.isdigit() and len(header) <= _HEADER_DIGITS):
        raise PoisonReport(Poison.HEADERS, f"{bytes(header[:40])!r} is not a whole number")
    return int(header)


def _dead_letter(subject: tuple[str, str], row: ReportRow, error: PoisonReport) -> Row:
    """The row for the sinks about a rejected record: its content, its place and the cause."""
    key = "/".join(subject)
    if subject == NO_SUBJECT:
        key = bytes(row.key or b"").decode(errors="replace")[:HEAD]
    letter = DeadLetter(
        reason=error.poison,
        detail=brief(str(error)),
        topic=keys.LOAD_REPORTS,
        partition=row.partition,
        offset=row.offset,
        key=key,
        size=row.size,
        head=head_of(bytes(row.value)),
        field=error.field,
    )
    where = f"{row.partition}/{row.offset}"
    return Row(subject[0], Tag.DEAD_LETTER, where, msgspec.json.encode(letter), row.appended_ms)
