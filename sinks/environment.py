"""Words what is wrong with settings that a process reads from its environment."""

from __future__ import annotations

from pydantic import ValidationError

from sinks.errors import Misconfigured


def misconfigured(section: str, error: ValidationError) -> Misconfigured:
    """What to raise for a section of the settings. It shows no value: one may be a secret."""
    said = "; ".join(problem["msg"] for problem in error.errors(include_input=False))
    return Misconfigured(f"{section}: {said}")
