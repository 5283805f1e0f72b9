"""Builds the documentation as a site, by mkdocs.yml: ``python -m admin.documents.site``.

The pages are copied into one folder as they lie in the repository, so that a link holds in both.
A broken link or anchor, and a page that the navigation lacks, are errors.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
FOLDER: Final = ROOT / "build"

_PAGES: Final = (
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "SECURITY.md",
    "LICENSE",
    "docs",
    "examples/java-broker/README.md",
)


def build(folder: Path = FOLDER) -> Path:
    """Copy the pages to ``folder``/pages and build the site from them; returns its folder.

    Raises CalledProcessError; what is wrong is on stderr.
    """
    pages, site = folder / "pages", folder / "site"
    shutil.rmtree(pages, ignore_errors=True)
    for name in _PAGES:
        source, copy = ROOT / name, pages / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, copy)
        else:
            shutil.copy(source, copy)
    config = folder / "mkdocs.yml"
    config.write_text(f"INHERIT: {ROOT / 'mkdocs.yml'}\ndocs_dir: {pages}\nsite_dir: {site}\n")
    command = [sys.executable, "-m", "mkdocs", "build", "--config-file", str(config)]
    subprocess.run(command, check=True)
    return site


if __name__ == "__main__":
    try:
        build()
    except subprocess.CalledProcessError as error:
        sys.exit(error.returncode)
