"""A module of tests is for pytest alone: what several tests use has a module of its own."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
IMPORTED = re.compile(r"^\s*(?:from|import)\b.*\btest_\w+.*$", re.MULTILINE)
"""As text, so that scripts which tests start are read too."""


def test_no_module_of_tests_is_imported() -> None:
    found = [
        f"{file.relative_to(ROOT)}: {line.group().strip()}"
        for package in ROOT.iterdir()
        if (package / "__init__.py").exists()
        for file in package.rglob("*.py")
        for line in IMPORTED.finditer(file.read_text("utf-8"))
    ]
    assert found == []
