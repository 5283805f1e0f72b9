"""Names of Kafka topics and Redis keys; no other module spells them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

LOAD_REPORTS: Final = "trimtab.load-reports"
CONTROL: Final = "trimtab.control"
COMMANDS: Final = "trimtab.commands"
OWNERSHIP: Final = "trimtab.ownership"
ROUNDS: Final = "trimtab.rounds"
DEAD_LETTERS: Final = "trimtab.dead-letters"
GENERATIONS: Final = "trimtab.generations"
STATE: Final = "trimtab.state"

SESSION_HEADER: Final = "trimtab-session"
SEQUENCE_HEADER: Final = "trimtab-sequence"

MARK: Final = ""
"""A field of the records' hash, and a member of their index, that is no bundle: a key without it
was deleted since the job last rebuilt the records."""


def open_key(cluster: str) -> str:
    """Hash: the generation that may write, the data history (``master_replid``) on which the store
    was opened, how many replicas must acknowledge, and what is being rebuilt."""
    return f"trimtab:{{{cluster}}}:open"


def replicas_key(cluster: str) -> str:
    """Hash: how many replicas the master has had, on this history and on earlier ones, and whether
    it was without any."""
    return f"trimtab:{{{cluster}}}:replicas"


def ownership_key(cluster: str) -> str:
    """Hash: by bundle, its ownership record as JSON; and MARK."""
    return f"trimtab:{{{cluster}}}:ownership"


def journal_key(cluster: str) -> str:
    """Stream: every accepted transition, relayed to Kafka."""
    return f"trimtab:{{{cluster}}}:journal"


def unjournalled_key(cluster: str) -> str:
    """Set: bundles with changes that the journal lacks, because it was full."""
    return f"trimtab:{{{cluster}}}:unjournalled"


def applied_key(cluster: str) -> str:
    """Hash: by query id, the query's last applied batch and the outcomes of that batch's first
    page. Further fields, named by `pages.lua`, hold the other pages and which queries are the
    newest."""
    return f"trimtab:{{{cluster}}}:applied"


def command_stream(cluster: str, broker: str) -> str:
    """Stream: commands that one broker has not acknowledged. It expires a day after the last
    one."""
    return f"trimtab:{{{cluster}}}:commands:{broker}"


def bundles_key(cluster: str) -> str:
    """Sorted set, all scores 0: the names of all bundles that have a record and are not deleted;
    and MARK. Within a namespace the order of names is the order on the hash ring."""
    return f"trimtab:{{{cluster}}}:bundles"


def owned_key(cluster: str, broker: str) -> str:
    """Set: the bundles whose record names the broker as owner."""
    return f"trimtab:{{{cluster}}}:owned:{broker}"


def hints_key(cluster: str) -> str:
    """String: the job's newest placement hints as JSON (`trimtab.wire.hints.Hints`)."""
    return f"trimtab:{{{cluster}}}:hints"


def placed_key(cluster: str) -> str:
    """Hash: by broker, how many bundles lookups gave it since the newest hints."""
    return f"trimtab:{{{cluster}}}:placed"


def tallies_key(cluster: str) -> str:
    """Hash: by namespace or anti-affinity group, together with a broker or failure domain
    (`trimtab.store.spreading`), how many bundles lookups placed there since the newest hints."""
    return f"trimtab:{{{cluster}}}:tallies"


def groups_key(cluster: str) -> str:
    """Hash: by namespace, its anti-affinity group; by ``=group``, the group's namespaces as a JSON
    list."""
    return f"trimtab:{{{cluster}}}:groups"


def outcome_key(cluster: str, intent: str) -> str:
    """String with an expiry: the outcome of an operator's intent as JSON
    (`trimtab.wire.intent_outcome.IntentOutcome`)."""
    return f"trimtab:{{{cluster}}}:outcome:{intent}"


def plans_key(cluster: str) -> str:
    """Sorted set with an expiry: the ids of kept plans, ordered by the time of their last
    change."""
    return f"trimtab:{{{cluster}}}:plans"


def plan_key(cluster: str, plan: str) -> str:
    """String with an expiry: a kept plan as JSON (`trimtab.kept_plans.kept_plan.KeptPlan`)."""
    return f"trimtab:{{{cluster}}}:plans:{plan}"


def migrations_key(cluster: str) -> str:
    """Hash: by id, a migration of topics to another cluster as JSON
    (`trimtab.migration.migration.Migration`)."""
    return f"trimtab:{{{cluster}}}:migrations"


def topics_key(cluster: str, namespace: str) -> str:
    """Hash: by topic of the namespace, how far it has migrated, as JSON
    (`trimtab.wire.topics.TopicRecord`)."""
    return f"trimtab:{{{cluster}}}:topics:{namespace}"


def places_key(cluster: str, namespace: str) -> str:
    """Sorted set: topics of the namespace that have a record, by their position on the ring."""
    return f"trimtab:{{{cluster}}}:places:{namespace}"


def migrated_key(cluster: str, migration: str) -> str:
    """Hash: by ``wave state`` and by ``namespace state``, how many topics of a migration are in
    that state; with ``backlog``, ``stays``, ``began``, ``attempts`` or ``errors`` in place of a
    state, a sum over the topics. It is deleted with the migration."""
    return f"trimtab:{{{cluster}}}:migrated:{migration}"


def named_key(cluster: str, migration: str) -> str:
    """Hash: by bundle, the last wave for which its owner has named all topics. It exists only while
    topics may be enlisted."""
    return f"trimtab:{{{cluster}}}:named:{migration}"


def urls_key(cluster: str, broker: str) -> str:
    """String with an expiry: the broker's service URLs as JSON
    (`trimtab.wire.lookup.ServiceUrls`), written by its agent."""
    return f"trimtab:{{{cluster}}}:urls:{broker}"


def whys_key(cluster: str) -> str:
    """Hash: by bundle or broker, the rounds that explain it, newest first, separated by commas."""
    return f"trimtab:{{{cluster}}}:why"


def explained_key(cluster: str) -> str:
    """Sorted set: rounds with explanations, ordered by their batch timestamp."""
    return f"trimtab:{{{cluster}}}:why:rounds"


def explanations_key(cluster: str, number: int | str) -> str:
    """Hash: by bundle or broker, its explanation in a round (`trimtab.wire.explanation`)."""
    return f"trimtab:{{{cluster}}}:why:round:{number}"


def successor_key(cluster: str, broker: str) -> str:
    """String with an expiry: the session that waits until an older session of this broker ends."""
    return f"trimtab:{{{cluster}}}:successor:{broker}"


def sessions_key(cluster: str) -> str:
    """Hash: by broker, the last session that held its lease and has not reported its own end, and
    when that lease ends by the server's clock, in milliseconds."""
    return f"trimtab:{{{cluster}}}:sessions"


def clock_key(cluster: str) -> str:
    """String with an expiry of a second. It exists while the job's own clock agrees with the
    server's."""
    return f"trimtab:{{{cluster}}}:clock"


def assertion_key(cluster: str, history: str, broker: str) -> str:
    """String: the newest records of its bundles that a broker saw, sent while this data history was
    closed (`trimtab.wire.assertion.Assertion`)."""
    return f"trimtab:{{{cluster}}}:assertion:{history}:{broker}"


def assertions_prefix(cluster: str) -> str:
    """The common prefix of all assertion keys; the history follows."""
    return f"trimtab:{{{cluster}}}:assertion:"


def lease_key(cluster: str, broker: str) -> str:
    """String with an expiry: a broker's lease, the proof that the broker is alive."""
    return f"trimtab:{{{cluster}}}:lease:{broker}"


KINDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "open": "hash",
        "replicas": "hash",
        "ownership": "hash",
        "journal": "stream",
        "unjournalled": "set",
        "applied": "hash",
        "commands:": "stream",
        "bundles": "zset",
        "owned:": "set",
        "hints": "string",
        "placed": "hash",
        "tallies": "hash",
        "groups": "hash",
        "outcome:": "string",
        "plans": "zset",
        "plans:": "string",
        "migrations": "hash",
        "topics:": "hash",
        "places:": "zset",
        "migrated:": "hash",
        "named:": "hash",
        "urls:": "string",
        "why": "hash",
        "why:rounds": "zset",
        "why:round:": "hash",
        "successor:": "string",
        "sessions": "hash",
        "clock": "string",
        "assertion:": "string",
        "lease:": "string",
    }
)
"""Redis's type of each key, by what follows the cluster; after a colon follows a name."""


EVERY: Final = "trimtab:{*}:*"
"""A pattern that all keys of all clusters match."""


def cluster_of(key: str) -> str:
    """The cluster of a key that EVERY matches; no cluster's name has a brace."""
    return key.partition("}:")[0].partition("{")[2]


def kind_of(key: str) -> str | None:
    """Redis's type of a key of a cluster; None for a key that this version does not write."""
    rest = key.partition("}:")[2]
    named = (rest[: at + 1] for at, character in enumerate(rest) if character == ":")
    found = [KINDS[part] for part in named if part in KINDS]
    return KINDS.get(rest) or (found[-1] if found else None)
