"""The models, how far each is searched, and what happens when one of its cures is switched off."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parent


class Promise(StrEnum):
    """What a model asserts."""

    ONE_OWNER = "one owner"
    """A bundle has one owner, and so have bundles that overlap."""
    ONE_EPOCH = "one epoch"
    """No epoch goes back, or is given out twice."""
    WAY_BACK = "a way back"
    """From every state a schedule leads to service."""


@dataclass(frozen=True, slots=True)
class Cure:
    """A guard of the protocol, and the flag that takes it out of a model."""

    flag: str
    without: str
    """What the protocol does then."""
    breaks: Promise
    hole: str = ""
    """Its number in the list of schedules that made two brokers serve, if it is one of them."""
    assumption: bool = False
    """No guard but something that the protocol takes for granted."""
    bound: tuple[str, ...] = ()
    """Flags of a search that is long enough to find the counterexample."""
    depth: int = 30
    """Steps of the longest schedule that is looked at: a few more than the counterexample has, for
    twice as many take up to thirty times as long."""


@dataclass(frozen=True, slots=True)
class Model:
    """One model: its file, the flags of its small and its full bound, and its cures."""

    name: str
    small: tuple[str, ...]
    full: tuple[tuple[str, ...], ...]
    """Searches that together are all that `make model` looks at."""
    cures: tuple[Cure, ...]

    @property
    def file(self) -> Path:
        return FOLDER / f"{self.name}.pml"


_ONE_FAULT: Final = ("FAULTS=1", "KILLS=0")
_TWO_FAULTS: Final = ("FAULTS=2", "KILLS=0")

MODELS: Final = (
    Model(
        "histories",
        small=_ONE_FAULT,
        full=(
            _TWO_FAULTS,
            ("FAULTS=1", "KILLS=1"),
            (*_ONE_FAULT, "HANGS=1"),
            (*_ONE_FAULT, "DELETIONS=1"),
        ),
        cures=(
            Cure(
                "RUN_ID_ONLY",
                "a store is known by its process, not by the history of its data",
                Promise.ONE_EPOCH,
                hole="2",
                bound=_TWO_FAULTS,
            ),
            Cure(
                "NO_REPLICA_CHECK",
                "a master need not reach its replicas",
                Promise.ONE_OWNER,
                hole="3",
                bound=_ONE_FAULT,
            ),
            Cure(
                "FRESH_SHORTCUT",
                "an empty store and an empty journal are opened at once",
                Promise.ONE_OWNER,
                hole="5",
                bound=_ONE_FAULT,
            ),
            Cure(
                "NO_SPENT_ON_FLUSH",
                "an emptied store is opened again under the same generation",
                Promise.ONE_EPOCH,
                hole="14",
                bound=_ONE_FAULT,
            ),
            Cure(
                "NO_MARK",
                "a store whose records were deleted stays open",
                Promise.ONE_EPOCH,
                bound=("FAULTS=0", "KILLS=0", "DELETIONS=1"),
            ),
            Cure(
                "TRUST_LAG",
                "a master that hung counts acknowledgements that waited in its sockets as new ones",
                Promise.ONE_OWNER,
                bound=(*_ONE_FAULT, "HANGS=1"),
            ),
            Cure(
                "NO_LAG_IN_WAIT",
                "a new master waits for leases only, not for the old one to notice",
                Promise.ONE_OWNER,
                bound=_ONE_FAULT,
            ),
            Cure(
                "NO_WAIT",
                "a store is opened as soon as its records are restored",
                Promise.ONE_OWNER,
                bound=_ONE_FAULT,
            ),
            Cure(
                "NO_ASSERTION",
                "brokers do not say what they saw",
                Promise.ONE_OWNER,
                bound=_ONE_FAULT,
            ),
            Cure(
                "ASSERT_ONCE",
                "a broker reports once what it saw, and not what it sees after that",
                Promise.ONE_OWNER,
                bound=_ONE_FAULT,
                depth=40,
            ),
            Cure(
                "CARRY_ON",
                "a lease is carried over to another history, however soon it ends",
                Promise.ONE_OWNER,
                bound=_ONE_FAULT,
            ),
            Cure(
                "FORGOTTEN_REPLICAS",
                "a master that is left behind does not know that it had a replica",
                Promise.ONE_EPOCH,
                assumption=True,
                bound=_TWO_FAULTS,
                depth=40,
            ),
            Cure(
                "JOB_ASKS_OLD_MASTER",
                "the job opens a master that was left behind",
                Promise.ONE_EPOCH,
                assumption=True,
                bound=_ONE_FAULT,
                depth=60,
            ),
            Cure(
                "OLD_MASTER_REJOINED",
                "a master that was left behind gets its replica back",
                Promise.ONE_EPOCH,
                assumption=True,
                bound=_ONE_FAULT,
            ),
        ),
    ),
    Model(
        "twins",
        small=("CLOSURES=0",),
        full=(("CLOSURES=1",), ("CLOSURES=0", "DELETIONS=1")),
        cures=(
            Cure(
                "NO_SUCCESSOR",
                "a newer process of a name gets the lease at once",
                Promise.ONE_OWNER,
                hole="1",
                bound=("CLOSURES=0",),
                depth=40,
            ),
            Cure(
                "OLD_SESSION_RENEWS",
                "the older process goes on renewing while the newer one waits",
                Promise.WAY_BACK,
                bound=("CLOSURES=0",),
            ),
            Cure(
                "SWALLOW_LAPSE",
                "that a lease ended for a while, while its broker claimed, is not noticed",
                Promise.ONE_OWNER,
                hole="4",
                bound=("CLOSURES=0",),
            ),
            Cure(
                "SWALLOW_ASSERTED",
                "that a lease ended is not noticed where the store has closed since",
                Promise.ONE_OWNER,
                hole="4",
                bound=("CLOSURES=1",),
                depth=40,
            ),
            Cure(
                "COUNT_FROM_ANSWER",
                "a lease is counted from when the answer came",
                Promise.ONE_OWNER,
                bound=("CLOSURES=0",),
            ),
            Cure(
                "NO_NOTE",
                "a lease whose key was deleted counts as ended",
                Promise.ONE_OWNER,
                bound=("CLOSURES=0", "DELETIONS=1"),
            ),
        ),
    ),
    Model(
        "claims",
        small=(),
        full=(("LEASE=4",),),
        cures=(
            Cure(
                "NO_SECOND_CLOCK",
                "a lease that ended by the server's clock alone is believed",
                Promise.ONE_OWNER,
                hole="7",
            ),
            Cure(
                "SERVE_WHILE_GIVING",
                "a broker serves until the store says that another has the bundle",
                Promise.ONE_OWNER,
            ),
        ),
    ),
    Model(
        "split_merge",
        small=("CHANGES=3", "KILLS=0"),
        full=(("CHANGES=4", "KILLS=1"), ("CHANGES=3", "KILLS=0", "FAULTS=2")),
        cures=(
            Cure(
                "NAMES_BY_ORDER",
                "only the next name in the index is looked at, a range or not",
                Promise.ONE_OWNER,
                hole="6",
            ),
            Cure(
                "SERVE_WITHOUT_ANSWER",
                "what may have been retired is served until an answer comes",
                Promise.ONE_OWNER,
                bound=("CHANGES=4", "KILLS=0"),
            ),
            Cure(
                "LET_OVERLAPS_STAND",
                "a rebuild keeps both of two records that overlap",
                Promise.ONE_OWNER,
                bound=("CHANGES=4", "KILLS=0"),
            ),
            Cure(
                "SAME_GENERATION",
                "a rebuild that was interrupted starts again in the same generation",
                Promise.ONE_EPOCH,
                bound=("CHANGES=3", "KILLS=0", "FAULTS=2"),
            ),
        ),
    ),
)
