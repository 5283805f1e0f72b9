"""Draws the life of a kept plan from its table, so that the picture always matches.

``python -m admin.documents.plan_diagram`` writes it into docs/plans.md, between the two marks.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from admin.documents.state_diagram import END
from trimtab.kept_plans.life import TRANSITIONS, PlanState

DOCUMENT: Final = Path("docs/plans.md")
BEGIN: Final = "<!-- made by python -m admin.documents.plan_diagram -->"


def write_diagram(document: str) -> str:
    """The document with the current diagram; raises ValueError without the marks."""
    before, _, rest = document.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not end:
        raise ValueError(f"the document lacks {BEGIN} or {END}")
    drawn = "\n".join(["```mermaid", "stateDiagram-v2", *_arrows(), "```"])
    return f"{before}{BEGIN}\n\n{drawn}\n\n{END}{after}"


def _arrows() -> Iterator[str]:
    yield f"    [*] --> {PlanState.PROPOSED}"
    yield f"    [*] --> {PlanState.APPROVED}: of an undo"
    for state, row in TRANSITIONS.items():
        for event, target in row.items():
            yield f"    {state} --> {target}: {event}"


if __name__ == "__main__":
    DOCUMENT.write_text(write_diagram(DOCUMENT.read_text("utf-8")), "utf-8")
