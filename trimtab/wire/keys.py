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
    """Hash: the generation that may write, and the data history (``master_replid``) that it was
    opened on; how many replicas must acknowledge, and what is being rebuilt."""
    return f"trimtab:{{{cluster}}}:open"


def replicas_key(cluster: str) -> str:
    """Hash: how many replicas the master has had on this history and on earlier ones, and whether
    it was alone."""
    return f"trimtab:{{{cluster}}}:replicas"


def ownership_key(cluster: str) -> str:
    """Hash: bundle to its ownership record as JSON; and MARK."""
    return f"trimtab:{{{cluster}}}:ownership"


def journal_key(cluster: str) -> str:
    """Stream: every accepted transition, relayed to Kafka."""
    return f"trimtab:{{{cluster}}}:journal"


def unjournalled_key(cluster: str) -> str:
    """Set: bundles with changes that are not in the journal, because it was full."""
    return f"trimtab:{{{cluster}}}:unjournalled"


def applied_key(cluster: str) -> str:
    """Hash: query id to its last applied batch and the outcomes of that batch's first page; the
    other pages, and which queries are the newest, in fields named by `pages.lua`."""
    return f"trimtab:{{{cluster}}}:applied"


def command_stream(cluster: str, broker: str) -> str:
    """Stream: commands that one broker has not acknowledged; expires within a day of the last."""
    return f"trimtab:{{{cluster}}}:commands:{broker}"


def bundles_key(cluster: str) -> str:
    """Sorted set, all scores 0: every bundle that has a record and is not deleted, by name. Within
    a namespace, name order is the order of the hash ring. And MARK."""
    return f"trimtab:{{{cluster}}}:bundles"


def owned_key(cluster: str, broker: str) -> str:
    """Set: the bundles whose record names the broker as owner."""
    return f"trimtab:{{{cluster}}}:owned:{broker}"


def hints_key(cluster: str) -> str:
    """String: the job's newest placement hints as JSON (`trimtab.wire.hints.Hints`)."""
    return f"trimtab:{{{cluster}}}:hints"


def placed_key(cluster: str) -> str:
    """Hash: broker to how many bundles claims gave it since the newest hints."""
    return f"trimtab:{{{cluster}}}:placed"


def tallies_key(cluster: str) -> str:
    """Hash: namespace or anti-affinity group, with a broker or failure domain
    (`trimtab.store.spreading`), to how many bundles claims placed there since the newest hints."""
    return f"trimtab:{{{cluster}}}:tallies"


def groups_key(cluster: str) -> str:
    """Hash: namespace to its anti-affinity group; ``=group`` to the group's namespaces as a JSON
    list."""
    return f"trimtab:{{{cluster}}}:groups"


def outcome_key(cluster: str, intent: str) -> str:
    """String with an expiry: the outcome of an operator's intent as JSON
    (`trimtab.wire.intent_outcome.IntentOutcome`)."""
    return f"trimtab:{{{cluster}}}:outcome:{intent}"


def plans_key(cluster: str) -> str:
    """Sorted set with an expiry: kept plans' ids, by when each last changed."""
    return f"trimtab:{{{cluster}}}:plans"


def plan_key(cluster: str, plan: str) -> str:
    """String with an expiry: a kept plan as JSON (`trimtab.kept_plans.kept_plan.KeptPlan`)."""
    return f"trimtab:{{{cluster}}}:plans:{plan}"


def migrations_key(cluster: str) -> str:
    """Hash: id to a migration of topics to another cluster as JSON
    (`trimtab.migration.migration.Migration`)."""
    return f"trimtab:{{{cluster}}}:migrations"


def topics_key(cluster: str, namespace: str) -> str:
    """Hash: topic of the namespace to how far it has migrated, as JSON
    (`trimtab.wire.topics.TopicRecord`)."""
    return f"trimtab:{{{cluster}}}:topics:{namespace}"


def places_key(cluster: str, namespace: str) -> str:
    """Sorted set: topics of the namespace that have a record, by their position on the ring."""
    return f"trimtab:{{{cluster}}}:places:{namespace}"


def migrated_key(cluster: str, migration: str) -> str:
    """Hash: ``wave state`` and ``namespace state`` to how many topics of a migration are in it; for
    ``backlog``, ``stays``, ``began``, ``attempts`` and ``errors`` their sums. Deleted with the
    migration."""
    return f"trimtab:{{{cluster}}}:migrated:{migration}"


def named_key(cluster: str, migration: str) -> str:
    """Hash: bundle to the last wave of which its owner has named all its topics; only while topics
    may be enlisted."""
    return f"trimtab:{{{cluster}}}:named:{migration}"


def urls_key(cluster: str, broker: str) -> str:
    """String with an expiry: the broker's service URLs as JSON
    (`trimtab.wire.lookup.ServiceUrls`), written by its agent."""
    return f"trimtab:{{{cluster}}}:urls:{broker}"


def whys_key(cluster: str) -> str:
    """Hash: bundle or broker to the rounds that explain it, newest first, comma-separated."""
    return f"trimtab:{{{cluster}}}:why"


def explained_key(cluster: str) -> str:
    """Sorted set: rounds with explanations, by their batch timestamp."""
    return f"trimtab:{{{cluster}}}:why:rounds"


def explanations_key(cluster: str, number: int | str) -> str:
    """Hash: bundle or broker to its explanation in a round (`trimtab.wire.explanation`)."""
    return f"trimtab:{{{cluster}}}:why:round:{number}"


def successor_key(cluster: str, broker: str) -> str:
    """String with an expiry: the session that waits for an older one of this broker to end."""
    return f"trimtab:{{{cluster}}}:successor:{broker}"


def sessions_key(cluster: str) -> str:
    """Hash: broker to the session that held its lease last and has not reported its end, and the
    end of that lease by the server's clock, in milliseconds."""
    return f"trimtab:{{{cluster}}}:sessions"


def clock_key(cluster: str) -> str:
    """String with an expiry of a second: the job's own clock agrees with the server's."""
    return f"trimtab:{{{cluster}}}:clock"


def assertion_key(cluster: str, history: str, broker: str) -> str:
    """String: the records of its bundles that a broker last saw, sent while this data history was
    closed (`trimtab.wire.assertion.Assertion`)."""
    return f"trimtab:{{{cluster}}}:assertion:{history}:{broker}"


def assertions_prefix(cluster: str) -> str:
    """The common prefix of all assertion keys; the history follows."""
    return f"trimtab:{{{cluster}}}:assertion:"


def lease_key(cluster: str, broker: str) -> str:
    """String with an expiry: a broker's lease, proof that it is alive."""
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
