"""An ownership record as it stands in Redis and, with its bundle and cause, on the journal."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

import msgspec

from trimtab.model import Epoch, parse_bundle
from trimtab.ownership import Event, State
from trimtab.wire.command import LARGEST, Command


class Record(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Who owns a bundle. ``since`` is Redis TIME in epoch milliseconds."""

    state: State
    epoch: Epoch
    owner: str | None = None
    destination: str | None = None
    since: int = 0
    by: str = ""
    """Id of the request that wrote it: the same request again finds its mark and is not refused."""
    falls: int = 0
    """Owners in a row that died soon after they had got it."""
    v: int = 1


class Change(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One accepted transition on the journal; Kafka key ``cluster/bundle``.

    Raises ValueError where the bundle cannot be one, or a number would not fit a reader's state.
    """

    cluster: str
    bundle: str
    event: Event
    record: Record
    v: int = 1
    pruned: bool = False
    """The store has forgotten ``record``, the end of a bundle, as old; after this the topic has a
    tombstone. Readers of earlier releases take it for a copy of that end."""

    def __post_init__(self) -> None:
        parse_bundle(self.bundle)
        if not all(0 <= number < LARGEST for number in (*self.record.epoch, self.record.since)):
            raise ValueError("an epoch or a time is negative or beyond 2^53")


class Candidate(NamedTuple):
    """A broker that a bundle without an owner may go to; less ``load`` is better."""

    broker: str
    load: float


class Neighbour(NamedTuple):
    """The bundle just above another, and the epoch that its record must have."""

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
    """Whom TAKE and KEEP_AIM name."""
    actor: str | None = None
    """The broker that asks; nobody is the job. It must own the bundle, or CLAIM it for itself."""
    session: int | None = None
    """The asking process: refused unless it holds the broker's lease. None: not looked at, as for a
    lookup, which needs no lease."""
    commands: tuple[Command, ...] = ()
    """Go to broker streams if the request is accepted; the script stamps their epoch, generation,
    ``issued_at`` and ``deadline``. A broker's own may only go to the owner afterwards."""
    neighbour: Neighbour | None = None
    """Of two bundles of one owner that are merged (MERGE, and the RETIRE that ends it): the upper
    one. The event is done to both or to neither, and ends only what one request has begun; commands
    go out with the lower one's epoch."""
    children: tuple[str, ...] = ()
    """What takes the place of what is deleted (RETIRE): ascending, they tile it, and its owner owns
    them. Of two that are merged one."""
    candidates: tuple[Candidate, ...] = ()
    """Of ASSIGN, in place of ``broker``: the script takes the one with the least load among those
    that hold a lease, counting what was placed since the hints. Only the chosen one's command goes
    out."""
    each: float = 0.0
    """Load that a bundle placed since the hints is taken to add to its broker."""
    within_ms: int = 0
    """How long the commands have, counted from the script's run; 0 sets no deadline."""


class Refused(StrEnum):
    """Why a Transition was not carried out."""

    STALE_EPOCH = "stale-epoch"
    """The record has another epoch than expected: read it again, then decide anew."""
    ILLEGAL = "illegal-transition"
    """The table has no such row, or the two that are to become one are not being merged with each
    other."""
    NOT_PERMITTED = "not-permitted"
    """A broker's event from the job, or the job's from a broker."""
    NOT_OWNER = "not-owner"
    """The broker that asks is not the owner, or two that are merged have different ones."""
    SAME_BROKER = "same-broker"
    """The owner would hand the bundle to itself."""
    NOT_TILING = "not-tiling"
    """The children do not tile the bundle, or one of them is a bundle already; those to be merged
    are no neighbours; the bundle is new and overlaps one that stands; or its name is no range."""
    OWNER_LIVES = "owner-lives"
    """Its owner holds a lease: nobody may take it."""
    CLOCK_IN_DOUBT = "clock-in-doubt"
    """Its owner's lease has run out by the server's clock, and the caller's own clock does not
    agree on the time, or has not watched it for long enough: ask again later."""
    NO_LEASE = "no-lease"
    """The broker that would get it, or the process that asks, holds no lease."""
    OUTDATED = "outdated-agent"
    """The owner's agent is of an older version and cannot do it: upgrade the agent."""
    QUARANTINED = "quarantined"
    """One owner after another died soon after getting it: it was not handed on."""
    NO_BROKER = "no-broker"
    """The event needs a broker that neither the request nor the record names."""
    UNREADABLE = "unreadable-record"
    """Somebody has damaged the record: it is mended by a rebuild."""
    OLDER_BATCH = "repeated-older-batch"
    """A later batch of this query has been applied: the checkpoint went back."""


class TransitionOutcome(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What became of one Transition: accepted, or refused for a reason.

    ``record`` is as it now stands, None where there is none (OLDER_BATCH: not looked up).
    """

    id: str
    bundle: str
    accepted: bool
    reason: Refused | None = None
    record: Record | None = None
    others: dict[str, Record] = {}
    """The neighbour and the children that the request names, as they now stand."""
