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
    r"\b(amid|anew|announcer|contender|dearer|foretold|heed\w*|hence|in secret|in vain|"
    r"in whose stead|keeper|lest|let be|mended|nobody's|reckon\w*|rivals?|roll call|sees to it|"
    r"tenure|thereby|therein|thereof|told of|unreckonable|whence|whereby|whoever|whom|whomever)\b"
)
"""In lower case: ignoring case takes ten times as long."""
EXCEPT = {Path(__file__), ROOT / "docs" / "glossary.md"}
"""This list, and the glossary, which may name them."""


def test_no_retired_word_is_in_code_or_documents() -> None:
    files = [file for place in PLACES.split() for file in (ROOT / place).rglob("*")]
    files += ROOT.glob("*.md")
    found = [
        f"{file.relative_to(ROOT)}:{1 + text.count(chr(10), 0, word.start())}: {word.group()}"
        for file in files
        # The agent of an older version, as it was.
        if file.suffix in KINDS and file not in EXCEPT and "protocol_1" not in file.parts
        for text in [file.read_text("utf-8").lower()]
        for word in RETIRED.finditer(text)
    ]
    assert found == []
