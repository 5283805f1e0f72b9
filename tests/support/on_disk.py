"""A checkpoint's folder on this disk, as Spark's `Folder` shows it, without Spark."""

from __future__ import annotations

from pathlib import Path

from streaming.query.folder import FolderError


def write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


class OnDisk:
    """Stands for a `Folder`."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)

    def read(self, name: str) -> str:
        try:
            return (Path(self.path) / name).read_text()
        except OSError as error:
            raise FolderError(str(error)) from error

    def names(self, name: str = "") -> list[str]:
        folder = Path(self.path) / name
        return [each.name for each in folder.iterdir()] if folder.exists() else []

    def write(self, name: str, text: str) -> None:
        write(Path(self.path) / name, text)

    def try_writing(self) -> None:
        if Path(self.path).is_file():
            raise FolderError("Not a directory")
