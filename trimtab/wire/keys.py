"""Names of Kafka topics and Redis keys; nothing else spells them."""

from __future__ import annotations

from typing import Final

LOAD_REPORTS: Final = "trimtab.load-reports"
CONTROL: Final = "trimtab.control"
COMMANDS: Final = "trimtab.commands"
OWNERSHIP: Final = "trimtab.ownership"
ROUNDS: Final = "trimtab.rounds"
DEAD_LETTERS: Final = "trimtab.dead-letters"
GENERATIONS: Final = "trimtab.generations"

SESSION_HEADER: Final = "trimtab-session"
SEQUENCE_HEADER: Final = "trimtab-sequence"


def open_key(cluster: str) -> str:
    """Hash: the generation that may write and the ``run_id`` of the server it was opened on."""
    return f"trimtab:{{{cluster}}}:open"


def ownership_key(cluster: str) -> str:
    """Hash: bundle to its ownership record as JSON."""
    return f"trimtab:{{{cluster}}}:ownership"


def journal_key(cluster: str) -> str:
    """Stream: every accepted transition, relayed to Kafka."""
    return f"trimtab:{{{cluster}}}:journal"


def applied_key(cluster: str) -> str:
    """Hash: query id to its last applied batch and that batch's outcome."""
    return f"trimtab:{{{cluster}}}:applied"


def command_stream(cluster: str, broker: str) -> str:
    """Stream: the commands of one broker."""
    return f"trimtab:{{{cluster}}}:commands:{broker}"


def lease_key(cluster: str, broker: str) -> str:
    """String with an expiry: proof that a broker lives."""
    return f"trimtab:{{{cluster}}}:lease:{broker}"
