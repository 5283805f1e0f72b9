"""Where a password was told that nothing may tell."""

from __future__ import annotations

from pathlib import Path


def files_with(password: str, folder: Path) -> list[Path]:
    """Files below the folder that have it; a job's own settings, which must, are left out."""
    settings = folder / "trimtab.toml"
    files = [file for file in folder.rglob("*") if file.is_file() and file != settings]
    return [file for file in files if password.encode() in file.read_bytes()]
