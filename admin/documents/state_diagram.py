"""Draws the ownership state machine from its table, so that the picture always matches.

``python -m admin.documents.state_diagram`` writes it into docs/ownership.md, between the two marks.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from trimtab.ownership import BROKER_EVENTS, TRANSITIONS, Event, Given, State

DOCUMENT: Final = Path("docs/ownership.md")
BEGIN: Final = "<!-- made by python -m admin.documents.state_diagram -->"
END: Final = "<!-- end -->"

_GIVEN: Final = {
    Given.NOTHING: "",
    Given.OWNER_GONE: " †",
    Given.OWNER_GONE_OR_JOB: " ‡",
}


def diagram() -> str:
    """The Mermaid diagram, and a legend of its marks."""
    return "\n".join(
        [
            "```mermaid",
            "stateDiagram-v2",
            f"    [*] --> {State.FREE}",
            *_arrows(),
            "```",
            "",
            "In italics: what a broker may ask for. † only where the owner's lease is gone; "
            "‡ the same, unless the job asks.",
            "",
            *_table(),
        ]
    )


def write_diagram(document: str) -> str:
    """The document with the current diagram; raises ValueError without the marks."""
    before, _, rest = document.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not end:
        raise ValueError(f"the document lacks {BEGIN} or {END}")
    return f"{before}{BEGIN}\n\n{diagram()}\n\n{END}{after}"


def _arrows() -> Iterator[str]:
    for state, row in TRANSITIONS.items():
        # Events that lead to the same state share an arrow.
        for target in State:
            events = [e for e, effect in row.items() if effect.state is target]
            if events:
                label = ", ".join(f"{e}{_GIVEN[row[e].given]}" for e in events)
                yield f"    {state} --> {target}: {label}"


def _table() -> Iterator[str]:
    yield "| state | event | becomes | owner |"
    yield "|---|---|---|---|"
    for state, row in TRANSITIONS.items():
        for event, effect in row.items():
            label = f"{_name(event)}{_GIVEN[effect.given]}"
            yield f"| {state} | {label} | {effect.state} | {effect.owner} |"


def _name(event: Event) -> str:
    return f"*{event}*" if event in BROKER_EVENTS else str(event)


if __name__ == "__main__":
    DOCUMENT.write_text(write_diagram(DOCUMENT.read_text("utf-8")), "utf-8")
