"""An ownership record, as in Redis and, with its bundle and event, on the journal."""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NamedTuple

import msgspec

from trimtab.model import NO_EPOCH, Epoch, parse_bundle
from trimtab.ownership import WITHOUT_OWNER, Event, State
from trimtab.wire.command import LARGEST, Command


# Without gc: no record refers to itself, and a round holds a million of them.
class Record(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Who owns a bundle. ``since`` is Redis TIME in epoch milliseconds."""

    state: State
    epoch: Epoch
    owner: str | None = None
    destination: str | None = None
    since: int = 0
    by: str = ""
    """Id of the request that wrote the record. When that request is repeated it finds its own id,
    and is not refused."""
    falls: int = 0
    """How many owners in a row died soon after they got the bundle."""
    v: int = 1


NO_RECORD: Final = Record(state=State.FREE, epoch=NO_EPOCH)
"""What a bundle without a record counts as."""


class Change(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One accepted transition on the journal; Kafka key ``cluster/bundle``.

    Raises ValueError if the bundle's name is malformed, or a number does not fit a reader's state.
    """

    cluster: str
    bundle: str
    event: Event
    record: Record
    v: int = 1
    pruned: bool = False
    """The store has removed ``record``, the bundle's last one, because it is old. A tombstone
    follows on the topic. Readers of earlier releases see this as a copy of that last record."""

    def __post_init__(self) -> None:
        parse_bundle(self.bundle)
        record = self.record
        numbers = (*record.epoch, record.since, record.falls, record.v)
        if not all(0 <= number < LARGEST for number in numbers):
            raise ValueError("an epoch, a time or a count is negative or beyond 2^53")


_change = msgspec.json.Decoder(Change)


def decode_change(text: bytes) -> Change:
    """Decode a change that is to have effects.

    Raises MsgspecError, UnicodeDecodeError or RecursionError; also where the record lacks an owner
    in a state that has one, or the reverse: the script writes neither.
    """
    change = _change.decode(text)
    state, owner = change.record.state, change.record.owner
    if bool(owner) is (state in WITHOUT_OWNER):
        raise msgspec.ValidationError(f"a record in state {state} with owner {owner!r}")
    return change


class Candidate(NamedTuple):
    """A possible broker for a bundle without an owner; lower ``load`` is better."""

    broker: str
    load: float


class Neighbour(NamedTuple):
    """The bundle just above another one, and the epoch that its record must have."""

    bundle: str
    expect: Epoch


class Transition(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A request to the transition script: do ``event`` to ``bundle`` if its epoch is ``expect``.

    ``id`` names the request for ever. The new epoch is ``(open generation, expect.counter + 1)``.
    """

    id: str
    bundle: str
    event: Event
    expect: Epoch
    broker: str | None = None
    """The broker for TAKE and KEEP_AIM."""
    actor: str | None = None
    """The broker that asks; None for the job. It must own the bundle, or CLAIM it for itself."""
    session: int | None = None
    """The asking process: refused unless it holds the broker's lease. None: not checked, as for a
    lookup, which needs no lease."""
    commands: tuple[Command, ...] = ()
    """They go to broker streams if the request is accepted; the script stamps their epoch,
    generation, ``issued_at`` and ``deadline``. A broker's commands may only go to the new owner."""
    neighbour: Neighbour | None = None
    """The upper one of two bundles of one owner that are merged (MERGE, and the RETIRE that ends
    it). The event applies to both or to neither, and ends only a merge that one request began;
    commands go out with the lower one's epoch."""
    children: tuple[str, ...] = ()
    """What replaces the deleted bundle (RETIRE): ascending, they tile it, and its owner owns them.
    A merge has one child."""
    candidates: tuple[Candidate, ...] = ()
    """For ASSIGN, instead of ``broker``: the script takes the one with the least load among those
    that hold a lease, and counts bundles placed since the hints. Only the chosen one's command goes
    out."""
    each: float = 0.0
    """The load that each bundle placed since the hints is assumed to add to its broker."""
    tallies: dict[str, dict[str, int]] = {}
    """Candidate to the tallies in which its placement counts, and the value that each must have
    (negative: any); a candidate with another is passed over (`trimtab.store.spreading`)."""
    within_ms: int = 0
    """The time to carry out the commands, from the script's run; 0 sets no deadline."""


class Refused(StrEnum):
    """Why a Transition was not carried out."""

    STALE_EPOCH = "stale-epoch"
    """The record's epoch is not the expected one: read the record again, then decide again."""
    ILLEGAL = "illegal-transition"
    """The table has no row for this state and event, or the two bundles are not being merged with
    each other."""
    NOT_PERMITTED = "not-permitted"
    """The job asked for a broker's event, or a broker for one of the job's."""
    NOT_OWNER = "not-owner"
    """The broker that asks is not the owner, or the bundles to merge have different owners."""
    SAME_BROKER = "same-broker"
    """The owner would hand the bundle to itself."""
    NOT_TILING = "not-tiling"
    """The children do not tile the bundle, there are more than 1,025 of them, or one of them exists
    already; or the bundles to merge are not neighbours; or the bundle is new and overlaps an
    existing one; or its name is not a range."""
    OWNER_LIVES = "owner-lives"
    """Its owner holds a lease: no other broker may take it."""
    CLOCK_IN_DOUBT = "clock-in-doubt"
    """The owner's lease has ended by the server's clock, but the caller's own clock shows another
    time, or was not compared with the server's for long enough: ask again later."""
    NO_LEASE = "no-lease"
    """The broker that would get it, or the process that asks, holds no lease."""
    OVERTAKEN = "overtaken"
    """Since the request counted the bundles of the namespace or group, each candidate with a lease
    has got another one: count again."""
    OUTDATED = "outdated-agent"
    """The owner's agent has an older version, which cannot do this: upgrade the agent."""
    QUARANTINED = "quarantined"
    """Several owners in a row died soon after they got the bundle: no further broker gets it."""
    NO_BROKER = "no-broker"
    """The event needs a broker, and neither the request nor the record names one."""
    UNREADABLE = "unreadable-record"
    """The record is damaged: a rebuild repairs it."""
    OLDER_BATCH = "repeated-older-batch"
    """A later batch of this query was already applied: the query has returned to an older
    checkpoint."""


class TransitionOutcome(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The result of one Transition: accepted, or refused for a reason.

    ``record`` is the current one, None if there is none (OLDER_BATCH: not looked up).
    """

    id: str
    bundle: str
    accepted: bool
    reason: Refused | None = None
    record: Record | None = None
    others: dict[str, Record] = {}
    """The current records of the neighbour and the children that the request names."""
