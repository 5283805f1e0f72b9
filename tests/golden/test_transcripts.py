"""Stories of small clusters, told as their files have them.

After a change `python -m tests.transcripts --rewrite` writes them again. The diff is for reading:
each file says what to look for. `tests/transcripts/__init__.py` says how to write another one.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.transcripts.player import FOLDER, retell


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.txt")), ids=lambda path: path.stem)
def test_a_story_is_told_as_before(path: Path) -> None:
    assert retell(path) == path.read_text()


def test_there_are_stories() -> None:
    assert len([*FOLDER.glob("*.txt")]) >= 12
