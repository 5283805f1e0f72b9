"""Writes settings as the tables of the job's settings file."""

from __future__ import annotations

import json
from collections.abc import Mapping

from trimtab.settings import Settings, catalogue


def tables(settings: Settings, sources: Mapping[str, str], *, every: bool) -> str:
    """The TOML tables of all settings, or of those that are not at their default.

    Each has a comment with its unit, and its key from ``sources``, or else Pulsar's key.
    """
    values = settings.dumped()
    lines: dict[str, list[str]] = {}
    for path, default, known in catalogue(settings):
        if every or values[path] != default:
            group, name = path.split(".")
            key = sources.get(path) or (known.alias.key if known.alias is not None else "")
            comment = ", ".join(part for part in (known.unit, key) if part)
            # For these types JSON is valid TOML: the words are all ASCII.
            lines.setdefault(group, []).append(
                f"{name} = {json.dumps(values[path])}" + (f"  # {comment}" if comment else "")
            )
    return "\n".join(
        "".join(f"{line}\n" for line in (f"[settings.{group}]", *members))
        for group, members in lines.items()
    )
