"""What is wrong with a regular expression of a policy: rounds try each on many names.

Python searches backwards through all ways in which a pattern fits a name. Where a repeated group
can match the same text in two ways, their number doubles with each character, and no round ends:

(a+)+    a repetition, or an option, inside the repeated group
(a|a)+   alternatives that begin alike
So inside a repeated group alternatives must begin with different letters, and nothing may repeat.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

LONGEST_PATTERN: Final = 1000
MOST_GROUPS: Final = 50
"""Parentheses of a pattern: each deepens the stack that Python compiles it on."""
_TOKEN: Final = re.compile(
    r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\((?:\?(?:P?<[^>]*>|[^)]))?|[*+{?]|.", re.DOTALL
)
"""An escape, a class, the beginning of a group, a quantifier, or another character."""
_REPEATS: Final = frozenset("*+{")
_WIDE: Final = re.compile(r"\\[a-zA-Z0-9]|\[.*|\.|[$^]|\(.*", re.DOTALL)
"""A token that is no single letter."""


@dataclass(slots=True)
class _Group:
    """An open group, or the whole pattern."""

    choices: bool = False
    """Whether something inside can match in several ways."""
    firsts: list[str] = field(default_factory=lambda: [""])
    """The first token of each alternative so far; empty: none yet."""

    @property
    def fits_twice(self) -> bool:
        alike = len({*self.firsts}) < len(self.firsts) or any(
            not first or _WIDE.fullmatch(first) for first in self.firsts
        )
        return self.choices or (len(self.firsts) > 1 and alike)


def pattern_problem(pattern: str) -> str:
    """What is wrong with a pattern; empty if nothing is."""
    if len(pattern) > LONGEST_PATTERN or pattern.count("(") > MOST_GROUPS:
        return f"has more than {LONGEST_PATTERN} characters or {MOST_GROUPS} groups"
    try:
        re.compile(pattern)
    except (re.error, OverflowError) as error:
        return f"is no regular expression: {error}"
    if _repeats_choice(pattern):
        return (
            "repeats a repetition, or alternatives that begin alike, which may take for ever: say "
            "it with one repetition, of alternatives that begin with different letters"
        )
    return ""


def _repeats_choice(pattern: str) -> bool:
    """Whether a group that can match the same text in several ways is repeated."""
    open_groups = [_Group()]
    tokens = [*_TOKEN.findall(pattern), ""]
    for token, following in pairwise(tokens):
        group = open_groups[-1]
        if token == ")" and len(open_groups) > 1:
            closed = open_groups.pop()
            if closed.fits_twice and following in _REPEATS:
                return True
            open_groups[-1].choices |= closed.fits_twice
        elif token == "|":
            group.firsts.append("")
        elif token in _REPEATS or token == "?":
            group.choices = True
        else:
            group.firsts[-1] = group.firsts[-1] or token
            if token.startswith("("):
                open_groups.append(_Group())
    return False
