"""An intent of an operator or the watcher on trimtab.control; the Kafka key is the cluster."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Final
from zlib import crc32

import msgspec

from trimtab.controls import Mode
from trimtab.doubt import Doubt
from trimtab.migration.life import MigrationState
from trimtab.migration.migration import Counts, Gate, Target, Wave
from trimtab.policies import Isolation
from trimtab.wire.command import LARGEST


class IntentKind(StrEnum):
    """What an intent asks for."""

    SETTINGS = "settings"
    """Change settings: ``settings`` maps names (or Pulsar's keys) to values."""
    RESET = "reset"
    """Settings return to the values that the job was started with: ``names``, or all without it."""
    PAUSE = "pause"
    """Keep reading, but decide nothing."""
    RESUME = "resume"
    """Decide again, even if a harmful plan has frozen the strategies."""
    BROKER_LOST = "broker-lost"
    """``broker``'s lease ran out: it leaves the view, and its bundles are given to others. The same
    may follow for ``brokers``, which have missed a renewal: all of them, or with a ``page`` those
    of the pages so far."""
    BROKER_JOINED = "broker-joined"
    """``broker`` holds a lease that it did not hold before."""
    DOUBT = "doubt"
    """The cause ``name`` puts ownership in doubt to the degree ``level``."""
    DRAIN = "drain"
    """Take every bundle off ``broker`` and give it none, for a shutdown or maintenance."""
    UNDRAIN = "undrain"
    """Use ``broker`` again."""
    READMIT = "readmit"
    """End the quarantine of ``bundle``."""
    UNLOAD = "unload"
    """Take ``bundle``, or all of the namespace ``name``, off their brokers: to ``broker``, or where
    placement finds best without one."""
    SPLIT = "split"
    """Split ``bundle``: at ``positions``, by ``algorithm``, or without them as the setting says."""
    MERGE = "merge"
    """Merge ``bundle`` with its neighbour above, which the same broker must have."""
    NAMESPACE = "namespace"
    """Create the namespace ``name`` with a bundle between each two of ``positions`` and the ends of
    the ring, and give each to a broker."""
    ISOLATION = "isolation"
    """Set the isolation policy ``name`` to ``isolation``; without one, delete it."""
    ANTI_AFFINITY = "anti-affinity"
    """Put the namespace ``name`` into the anti-affinity group ``group``; if empty, into none."""
    FAILURE_DOMAIN = "failure-domain"
    """Define the failure domain ``name`` as ``brokers``."""
    APPROVE = "approve"
    """Carry out the kept plan ``plan``."""
    REJECT = "reject"
    """Do not carry out ``plan``, and do not propose the same again before it would have expired."""
    CANCEL = "cancel"
    """Cancel the steps of ``plan`` that have not begun."""
    UNDO = "undo"
    """Make a plan that moves back what ``plan`` has moved, if it is still there."""
    DRAIN_PLAN = "drain-plan"
    """Make a plan that drains ``brokers``, one after the other; it runs once it is approved."""
    RESTART_PLAN = "restart-plan"
    """The same, and uses each broker again once it has been restarted, before the next."""
    PIN = "pin"
    """Leave ``bundle``, or all of the namespace ``name``, where it is until ``until``. A bundle
    that must be placed again goes to ``broker``."""
    UNPIN = "unpin"
    """End the pin of ``bundle`` or of the namespace ``name``."""
    MODE = "mode"
    """Set the mode of the namespace ``name`` to ``mode``; without one, it has the cluster's."""
    BUDGET = "budget"
    """Set how many bundles of the tenant ``name`` may move in ``plans.tenant_period`` to ``limit``;
    if negative, the setting ``plans.tenant_moves`` counts."""
    MIGRATION_START = "migration-start"
    """Take the topics of ``scope`` to ``target``, in ``waves``, each once ``gate`` holds. The
    migration has this intent's id."""
    MIGRATION_PAUSE = "migration-pause"
    """Start no further topic of ``migration``."""
    MIGRATION_RESUME = "migration-resume"
    """Go on with ``migration``."""
    MIGRATION_ROLL_BACK = "migration-roll-back"
    """Bring back the topics of ``migration`` that were not written on the other cluster; with
    ``alone`` those that it cannot be asked for too, also while it is rolled back already."""
    CLUSTER_MIGRATION = "cluster-migration"
    """Set where the cluster's topics go to ``target``; if ``migrated``, migrate all that is not
    migrating yet; else roll such a migration back. Pulsar's ``update-cluster-migration``."""
    NAMESPACE_MIGRATION = "namespace-migration"
    """Migrate the namespace ``name`` to where the cluster's topics go if ``migrated``; else roll
    that back. Pulsar's ``update-migration-state``."""
    MIGRATION_PROGRESS = "migration-progress"
    """The topics of ``migration`` stand at ``counts``, by wave; owners of ``unseen`` bundles have
    not named theirs."""


OF_THE_WATCHER: Final = frozenset(
    {
        IntentKind.BROKER_LOST,
        IntentKind.BROKER_JOINED,
        IntentKind.DOUBT,
        IntentKind.MIGRATION_PROGRESS,
    }
)
"""What the job tells itself. No command waits for an outcome of these, and an id may come again."""


LONGEST_ID: Final = 200
"""Characters of an intent's id, which is part of a key in Redis."""


LONGEST_REASON: Final = 1000
"""Characters of an intent's reason, which an audit log and a screen show whole."""


class Intent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What an operator or the watcher asks of the job.

    ``id`` links it to its outcome (`trimtab.wire.intent_outcome`): a second intent of an operator
    with the same id is the same request. ``at`` is the writer's clock (epoch ms), for readers only.
    It, ``page``, ``generation``, ``wave``, ``unseen`` and ``counts`` are from 0 to 2^53.
    """

    id: str
    kind: IntentKind
    cluster: str
    at: int = 0
    by: str = ""
    """Who asks."""
    reason: str = ""
    """Why, in the asker's words; decisions do not depend on it."""
    broker: str = ""
    settings: dict[str, str | int | float | bool] = {}
    names: tuple[str, ...] = ()
    name: str = ""
    isolation: Isolation | None = None
    group: str = ""
    brokers: tuple[str, ...] = ()
    page: int = 0
    """The page's number, from 1, of one scan of the leases."""
    bundle: str = ""
    algorithm: str = ""
    positions: tuple[int, ...] = ()
    level: Doubt = Doubt.STABLE
    plan: str = ""
    """A kept plan's id."""
    until: int = 0
    """When a pin ends (epoch ms)."""
    mode: Mode | None = None
    limit: int = -1
    migration: str = ""
    """A migration's id."""
    scope: str = ""
    """``cluster``, a namespace, or a topic's whole name."""
    target: Target | None = None
    waves: tuple[Wave, ...] = ()
    gate: Gate | None = None
    migrated: bool = False
    alone: bool = False
    """Roll back without asking the other cluster, which is given up."""
    state: MigrationState | None = None
    """The state of ``migration`` when ``counts`` were read; null: not said."""
    wave: int = 0
    """The last that had begun then."""
    counts: tuple[Counts, ...] = ()
    unseen: int = 0
    generation: int = 0
    """The generation of the job whose watcher says it; 0 from operators and earlier versions."""
    v: int = 1

    def __post_init__(self) -> None:
        # JSON knows no bound, and what is kept in state has 64 bits.
        if not all(0 <= number < LARGEST for number in self._numbers()):
            raise ValueError("a time, a page, a generation or a count is negative or beyond 2^53")

    def _numbers(self) -> Iterator[int]:
        yield from (self.at, self.page, self.generation, self.wave, self.unseen)
        for counts in self.counts:
            yield from counts.numbers()


def fingerprint(intent: Intent) -> int:
    """A checksum of what the intent asks for; who asked, when and why does not count."""
    return crc32(msgspec.json.encode(msgspec.structs.replace(intent, at=0, by="", reason="")))


decode_intent: Final = msgspec.json.Decoder(Intent).decode
"""Raises MsgspecError, UnicodeDecodeError or RecursionError."""
