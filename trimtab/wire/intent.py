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
    """Return the settings ``names``, or all if there are none, to the values at the job's start."""
    PAUSE = "pause"
    """Keep reading, but decide nothing."""
    RESUME = "resume"
    """Decide again, also if the breaker is open because a plan made things worse."""
    BROKER_LOST = "broker-lost"
    """The lease of ``broker`` has ended: the broker leaves the view, and others get its bundles.
    The same may soon be true of ``brokers``, which have missed a renewal. They are all such
    brokers, or with a ``page`` those of the pages so far."""
    BROKER_JOINED = "broker-joined"
    """``broker`` holds a lease that it did not hold before."""
    DOUBT = "doubt"
    """Set the doubt about ownership from the cause ``name`` to ``level``."""
    DRAIN = "drain"
    """Take every bundle off ``broker``, and give it no more, for a shutdown or maintenance."""
    UNDRAIN = "undrain"
    """Use ``broker`` again."""
    READMIT = "readmit"
    """End the quarantine of ``bundle``."""
    UNLOAD = "unload"
    """Take ``bundle``, or all bundles of the namespace ``name``, off their brokers. They go to
    ``broker``, or if none is given, where placement chooses."""
    SPLIT = "split"
    """Split ``bundle`` at ``positions`` or by ``algorithm``; without both, as the settings say."""
    MERGE = "merge"
    """Merge ``bundle`` with the bundle just above it, which the same broker must own."""
    NAMESPACE = "namespace"
    """Create the namespace ``name``, and give each of its bundles to a broker. ``positions`` are
    the boundaries between the bundles."""
    ISOLATION = "isolation"
    """Set the isolation policy ``name`` to ``isolation``; without one, delete it."""
    ANTI_AFFINITY = "anti-affinity"
    """Put the namespace ``name`` into the anti-affinity group ``group``. An empty ``group`` takes
    it out of its group."""
    FAILURE_DOMAIN = "failure-domain"
    """Define the failure domain ``name`` as ``brokers``."""
    APPROVE = "approve"
    """Carry out the kept plan ``plan``."""
    REJECT = "reject"
    """Do not carry out ``plan``. The same plan is not proposed again before ``plan`` would
    expire."""
    CANCEL = "cancel"
    """Cancel the steps of ``plan`` that have not begun."""
    UNDO = "undo"
    """Make a plan that moves back the bundles that ``plan`` has moved and that are still there."""
    DRAIN_PLAN = "drain-plan"
    """Make a plan that drains ``brokers``, one after the other; it runs once it is approved."""
    RESTART_PLAN = "restart-plan"
    """Make a plan that drains ``brokers`` one after the other, and uses each again after its
    restart, before it drains the next."""
    PIN = "pin"
    """Leave ``bundle``, or all bundles of the namespace ``name``, where they are until ``until``.
    If a bundle must be placed again, it goes to ``broker``."""
    UNPIN = "unpin"
    """End the pin of ``bundle`` or of the namespace ``name``."""
    MODE = "mode"
    """Set the mode of the namespace ``name`` to ``mode``. Without a mode the cluster's mode
    applies."""
    BUDGET = "budget"
    """Let at most ``limit`` bundles of the tenant ``name`` move in ``plans.tenant_period``. If
    ``limit`` is negative, the setting ``plans.tenant_moves`` applies."""
    MIGRATION_START = "migration-start"
    """Migrate the topics of ``scope`` to ``target`` in ``waves``. Each wave begins once ``gate``
    holds. The intent's id becomes the id of the migration."""
    MIGRATION_PAUSE = "migration-pause"
    """Begin no further topics of ``migration``."""
    MIGRATION_RESUME = "migration-resume"
    """Continue ``migration``."""
    MIGRATION_ROLL_BACK = "migration-roll-back"
    """Bring back the topics of ``migration`` that were not written on the other cluster. With
    ``alone`` also bring back the topics about which the other cluster cannot be asked, even if the
    rollback has begun already."""
    CLUSTER_MIGRATION = "cluster-migration"
    """Store ``target`` as the cluster to which this cluster's topics go. If ``migrated``, migrate
    all topics that do not migrate yet; otherwise roll such a migration back. It is Pulsar's
    ``update-cluster-migration``."""
    NAMESPACE_MIGRATION = "namespace-migration"
    """If ``migrated``, migrate the namespace ``name`` to the stored target of the cluster;
    otherwise roll that migration back. It is Pulsar's ``update-migration-state``."""
    MIGRATION_PROGRESS = "migration-progress"
    """Report the ``counts`` of ``migration``'s topics, by wave, and the number ``unseen`` of
    bundles whose owners have not yet named their topics."""


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
    """Why, in the words of the person who asks. Decisions do not depend on it."""
    broker: str = ""
    settings: dict[str, str | int | float | bool] = {}
    names: tuple[str, ...] = ()
    name: str = ""
    isolation: Isolation | None = None
    group: str = ""
    brokers: tuple[str, ...] = ()
    page: int = 0
    """Number of the page, from 1, within one scan of the leases."""
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
    """``cluster``, or a namespace, or a topic's full name."""
    target: Target | None = None
    waves: tuple[Wave, ...] = ()
    gate: Gate | None = None
    migrated: bool = False
    alone: bool = False
    """Whether to roll back without asking the other cluster, because it is given up."""
    state: MigrationState | None = None
    """The state of ``migration`` when ``counts`` were read; null: not given."""
    wave: int = 0
    """The last wave that had begun when ``counts`` were read."""
    counts: tuple[Counts, ...] = ()
    unseen: int = 0
    generation: int = 0
    """The generation of the job whose watcher sends the intent; 0 from operators and from earlier
    versions."""
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
