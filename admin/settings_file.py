"""Settings as the tables of the job's settings file."""

from __future__ import annotations

import json
from collections.abc import Mapping

from trimtab.settings import Settings, catalogue


def tables(settings: Settings, sources: Mapping[str, str], *, every: bool) -> str:
    """TOML of the settings that are not at their default, or of every one.

    Each has its unit in a comment, and the key in ``sources`` or else Pulsar's own for it.
    """
    values = settings.dumped()
    lines: dict[str, list[str]] = {}
    for path, default, known in catalogue(settings):
        if every or values[path] != default:
            group, name = path.split(".")
            key = sources.get(path) or (known.alias.key if known.alias is not None else "")
            comment = ", ".join(part for part in (known.unit, key) if part)
            # Of these types, JSON's notation is TOML's: the words are all in ASCII.
            lines.setdefault(group, []).append(
                f"{name} = {json.dumps(values[path])}" + (f"  # {comment}" if comment else "")
            )
    return "\n".join(
        "".join(f"{line}\n" for line in (f"[settings.{group}]", *members))
        for group, members in lines.items()
    )
