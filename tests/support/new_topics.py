"""Topics that are deleted and made again: for a job of another test nothing was ever published."""

from __future__ import annotations

from typing import Final

from confluent_kafka.admin import AdminClient

from sinks.kafka.topics import ensure_topics
from tests.support.waiting import eventually

_PATIENCE_S: Final = 60.0


def recreate_topics(bootstrap: str, *topics: str) -> None:
    """Delete those of the topics that there are, and create all that are missing."""
    admin = AdminClient({"bootstrap.servers": bootstrap})

    def there() -> list[str]:
        known = admin.list_topics(timeout=5).topics
        return [topic for topic in topics if topic in known]

    if found := there():
        for done in admin.delete_topics(found).values():
            done.result()
        eventually(lambda: not there(), "no topic", _PATIENCE_S)
    ensure_topics(bootstrap)
