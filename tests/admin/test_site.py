"""The documentation as a site, and what is made for it: pictures, commands, paths."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from admin.documents import commands, paths, pictures, runbooks, site
from tests.support.made import assert_made
from trimtab.shedding import STRATEGIES

DOCS = site.ROOT / "docs"
ELSEWHERE = re.compile(
    r"<(?:script|img|iframe|source)\b[^>]*\bsrc=[\"']?(?:https?:)?//"
    r"|<link\b(?![^>]*\brel=[\"']?canonical)[^>]*\bhref=[\"']?(?:https?:)?//"
    r"|url\([\"']?(?:https?:)?//|@import [\"'](?:https?:)?//"
)
"""What would have a browser load something from another host."""


def test_the_site_has_no_broken_link_and_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    try:
        built = site.build(tmp_path)
    except subprocess.CalledProcessError as error:
        where = "its warnings are above; the navigation is in mkdocs.yml"
        pytest.fail(f"make site: exit code {error.returncode}; {where}")
    files = [*built.rglob("*.html"), *built.rglob("*.css"), *built.rglob("*.svg")]
    assert (built / "docs/deciding.html") in files
    found = {
        str(file.relative_to(built)): load.group()
        for file in files
        if (load := ELSEWHERE.search(file.read_text("utf-8")))
    }
    assert found == {}


@pytest.mark.parametrize("name", pictures.TITLES)
def test_a_generated_picture_equals_the_committed_one(name: str) -> None:
    assert_made(pictures.FOLDER / f"{name}.svg", pictures.make(name))


def test_every_strategy_has_its_picture_and_the_command_of_the_runs_is_shown() -> None:
    text = (DOCS / "deciding.md").read_text("utf-8")
    assert set(pictures.TITLES) == set(STRATEGIES), "admin/documents/pictures.py: TITLES"
    for name, title in pictures.TITLES.items():
        assert f"### {title}\n\n`{name}`" in text, f"docs/deciding.md lacks {name}"
        assert f"(pictures/{name}.svg)" in text
    assert pictures.COMMAND in text


@pytest.mark.parametrize("module", [commands, paths, runbooks])
def test_a_generated_reference_equals_the_committed_one(module: object) -> None:
    made, file = (getattr(module, name) for name in ("write_document", "DOCUMENT"))
    assert_made(file, made())
