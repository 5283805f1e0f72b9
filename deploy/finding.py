"""The result of one check of the doctor."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    name: str
    ok: bool
    detail: str
    next_command: str = ""
    """What to type; empty if nothing is wrong."""


def good(name: str, detail: str) -> Finding:
    return Finding(name, True, detail)


def bad(name: str, detail: str, next_command: str) -> Finding:
    return Finding(name, False, detail, next_command)
