"""Draws what may become of a migration and of its topics, from their tables.

``python -m admin.documents.migration_diagram`` writes both into docs/migration.md, between marks.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from admin.documents.state_diagram import END
from admin.documents.tables import row
from admin.wire.members import words
from trimtab.migration import life, topic_life
from trimtab.migration.life import MigrationState
from trimtab.migration.topic_life import Given, TopicEvent, TopicState

DOCUMENT: Final = Path("docs/migration.md")
BEGIN: Final = "<!-- made by python -m admin.documents.migration_diagram: {} -->"


def write_diagrams(document: str) -> str:
    """The document with all current parts; raises ValueError without one's marks."""
    for name, part in _PARTS.items():
        begin = BEGIN.format(name)
        before, _, rest = document.partition(begin)
        _, end, after = rest.partition(END)
        if not end:
            raise ValueError(f"the document lacks {begin} or {END}")
        document = "\n".join([f"{before}{begin}", "", *part(), "", f"{END}{after}"])
    return document


def _migrations() -> Iterator[str]:
    yield from ("```mermaid", "stateDiagram-v2", f"    [*] --> {MigrationState.RUNNING}: start")
    for state, events in life.TRANSITIONS.items():
        for event, target in events.items():
            # Mermaid takes a hyphen in a name for an arrow's.
            yield f"    {_name(state)} --> {_name(target)}: {event}"
    yield "```"


def _topics() -> Iterator[str]:
    texts, events = dict(words(Given)), dict(words(TopicEvent))
    yield from ("| a topic is | event | then | only if |", "|---|---|---|---|")
    for state, effects in topic_life.TRANSITIONS.items():
        for event, effect in effects.items():
            given = "" if effect.given is Given.NOTHING else texts[effect.given]
            then = f"{effect.state}, and stays" if effect.stays else effect.state.value
            yield row(state.value, f"`{event}`: {events[event]}", then, given)


def _states() -> Iterator[str]:
    texts = dict(words(TopicState))
    yield from ("| state | meaning |", "|---|---|")
    for state in TopicState:
        yield row(f"`{state}`", texts[state])


def _name(state: MigrationState) -> str:
    return state.value.replace("-", "_")


_PARTS: Final = {"migrations": _migrations, "states": _states, "topics": _topics}


if __name__ == "__main__":
    DOCUMENT.write_text(write_diagrams(DOCUMENT.read_text("utf-8")), "utf-8")
