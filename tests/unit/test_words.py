"""Words that were retired for plain ones stay away: docs/glossary.md has those that are used."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PLACES = (
    "admin agent api benchmarks control deploy docs examples model simulation sinks sources "
    "streaming tests trimtab"
)
KINDS = {".java", ".lua", ".md", ".pml", ".py"}
RETIRED = re.compile(
    r"\b(announcer|contender|dearer|foretold|in whose stead|keeper|lest|mended|nobody's|reckon\w*|"
    r"rivals?|roll call|sees to it|tenure|told of|unreckonable|whence|whoever|whom|whomever)\b",
    re.IGNORECASE,
)
EXCEPT = {Path(__file__), ROOT / "docs" / "glossary.md"}
"""This list, and the glossary, which may name them."""


def test_no_retired_word_is_in_code_or_documents() -> None:
    files = [file for place in PLACES.split() for file in (ROOT / place).rglob("*")]
    files += ROOT.glob("*.md")
    found = [
        f"{file.relative_to(ROOT)}:{number}: {word.group()}"
        for file in files
        # The agent of an older version, as it was.
        if file.suffix in KINDS and file not in EXCEPT and "protocol_1" not in file.parts
        for number, line in enumerate(file.read_text("utf-8").splitlines(), 1)
        if (word := RETIRED.search(line))
    ]
    assert found == []
