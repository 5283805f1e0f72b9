"""The table of trimtab/ownership.py in Promela, for the models: they cannot follow another one.

``python -m model.table`` writes it into model/table.pml.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import Final

from trimtab.ownership import (
    BROKER_EVENTS,
    JOB_EVENTS,
    TRANSITIONS,
    Effect,
    Event,
    Given,
    OwnerRule,
    State,
)

FILE: Final = Path(__file__).parent / "table.pml"

_HEAD: Final = """\
/* Made by python -m model.table from TRANSITIONS in trimtab/ownership.py: do not edit.

   consult(state, event) looks up a row of the table. It sets what the record becomes, the broker it
   then names, and what else must hold; NO_ROW if the table has no such row. */
"""

_TAIL: Final = """\
  :: else -> becomes = NO_ROW
  fi
}"""


def rendered() -> str:
    """The whole include file."""
    return "\n".join(
        [
            _HEAD,
            *_numbers("", State),
            "#define NO_ROW 255",
            "",
            *_numbers("", Event),
            f"#define EVENTS {len(Event)}",
            "",
            *_numbers("OWNER_IS_", OwnerRule),
            "",
            *_numbers("GIVEN_", Given),
            "",
            f"#define A_BROKER_MAY_ASK(event) ({_one_of(BROKER_EVENTS)})",
            f"#define THE_JOB_MAY_ASK(event) ({_one_of(JOB_EVENTS)})",
            "",
            "hidden byte becomes, named, given;",
            "",
            "inline consult(state, event) {",
            "  if",
            *_rows(),
            _TAIL,
            "",
        ]
    )


def _rows() -> Iterator[str]:
    for state, row in TRANSITIONS.items():
        for event, effect in row.items():
            yield _row(state, event, effect)


def _row(state: State, event: Event, effect: Effect) -> str:
    asked = f"state == {_name('', state)} && event == {_name('', event)}"
    return (
        f"  :: {asked} -> becomes = {_name('', effect.state)};"
        f" named = {_name('OWNER_IS_', effect.owner)}; given = {_name('GIVEN_', effect.given)}"
    )


def _numbers(prefix: str, words: Iterable[StrEnum]) -> Iterator[str]:
    for number, word in enumerate(words):
        yield f"#define {_name(prefix, word)} {number}"


def _one_of(events: frozenset[Event]) -> str:
    return " || ".join(f"event == {_name('', event)}" for event in Event if event in events)


def _name(prefix: str, word: StrEnum) -> str:
    return prefix + word.name


if __name__ == "__main__":
    FILE.write_text(rendered(), "utf-8")
