"""Puts the generated parts into docs/wire.md, between their marks."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from admin.wire.parts import PARTS
from sinks.redis.scripts import BROKERS_SCRIPTS

DOCUMENT: Final = Path("docs/wire.md")
JAVA_SCRIPTS: Final = Path("examples/java-broker/src/scripts.properties")

_PART: Final = re.compile(r"<!-- part: (.+?) -->\n.*?<!-- end -->", re.DOTALL)


def write_parts(document: str) -> str:
    """The document with every part as it is now; raises ValueError for an unknown or absent one."""
    found = [match[1] for match in _PART.finditer(document)]
    wrong = sorted(set(found) ^ PARTS.keys())
    if wrong:
        raise ValueError(f"{DOCUMENT}: parts that are absent or unknown: {', '.join(wrong)}")
    return _PART.sub(lambda match: _part(match[1]), document)


def _part(name: str) -> str:
    text = "\n".join(PARTS[name]()).strip()
    return f"<!-- part: {name} -->\n\n{text}\n\n<!-- end -->"


def java_scripts() -> str:
    """The SHA-1 of each script that a broker calls, as Java's properties."""
    lines = [f"{each.__name__.removesuffix('_script')}={each().sha}" for each in BROKERS_SCRIPTS]
    return "\n".join(["# Written by `python -m admin.wire`.", *lines, ""])
