"""The doctor's checks of a job's settings file and checkpoint."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from deploy.finding import Finding, bad, good
from sinks.errors import SinkError
from sinks.kafka.watermarks import watermarks
from streaming.config import InvalidConfig, JobConfig, load_config
from streaming.config_problems import remedy
from streaming.environment import find_unknown
from streaming.readiness import NotReady

_LOCAL = frozenset({"", "file"})


def check_environment() -> list[Finding]:
    """A finding for each variable that is nearly a setting's name."""
    strangers = find_unknown(os.environ, JobConfig)
    return [bad("environment", str(each), f"unset {each.name}") for each in strangers if each.near]


def check_settings(config: Path) -> tuple[JobConfig | None, list[Finding]]:
    """The settings, None if they are wrong, and a finding for each problem."""
    try:
        settings = load_config(config)
    except InvalidConfig as error:
        found = [(each, remedy([each], config, os.environ)) for each in error.problems]
        return None, [bad("settings", *each) for each in found]
    strangers = find_unknown(os.environ, JobConfig)
    ignored = "".join(f", {each.name} is no setting" for each in strangers)
    return settings, [good("settings", f"{config} is valid{ignored}")]


def check_size(settings: JobConfig) -> Finding:
    """Check that this machine has the memory for the fleet; true where the job runs here."""
    if short := settings.find_shortage():
        return bad("memory", short, "free -m")
    return good("memory", f"{settings.size.whole_mib} MiB for {settings.size}")


def local_checkpoint(settings: JobConfig) -> Path | None:
    """The checkpoint's folder; None if it is on no disk of this machine."""
    parts = urlsplit(settings.checkpoint)
    if parts.scheme not in _LOCAL:
        return None
    return Path(parts.path if parts.scheme else settings.checkpoint).absolute()


def check_checkpoint(settings: JobConfig) -> Iterator[Finding]:
    """Check that the job can write its checkpoint, and continue from what is there."""
    name, path = "checkpoint", settings.checkpoint
    folder = local_checkpoint(settings)
    if folder is None:
        yield good(name, f"{path} is not a local path: the job checks it when it starts")
        return
    if problem := _find_obstacle(folder):
        yield bad(name, problem, f"ls -ld {folder} {folder.parent}")
        return
    kafka = settings.kafka
    # Imported here: it imports Spark, without which the doctor's other checks must run.
    from streaming.query.checkpoint import SOURCES, check_origin

    asked = partial(watermarks, kafka.bootstrap, SOURCES, kafka.client)
    try:
        check_origin(_Disk(folder), asked)
    except NotReady as error:
        yield bad(name, str(error), f"mv {folder} {folder}.old")
    except SinkError as error:
        yield bad(name, f"{path} is not compared with Kafka: {error}", "trimtab doctor")
    else:
        found = "is there" if folder.exists() else "is made by the job"
        yield good(name, f"{path} {found}")


def _find_obstacle(folder: Path) -> str:
    """Why nothing can be written there; empty if it can."""
    nearest = next(each for each in (folder, *folder.parents) if each.exists())
    if not nearest.is_dir():
        return f"{nearest} is not a folder"
    if not os.access(nearest, os.W_OK | os.X_OK):
        return f"{nearest} may not be written by this user"
    return ""


class _Disk:
    """A local checkpoint, read without Spark."""

    def __init__(self, folder: Path) -> None:
        self.path = str(folder)
        self._folder = folder

    def read(self, name: str) -> str:
        from streaming.query.folder import FolderError

        try:
            return (self._folder / name).read_text("utf-8", errors="replace")
        except OSError as error:
            raise FolderError(f"{name}: {error.strerror}") from error

    def names(self, name: str = "") -> list[str]:
        folder = self._folder / name
        found = [each.name for each in folder.iterdir()] if folder.is_dir() else []
        return [each for each in found if not each.startswith(".")]

    def try_writing(self) -> None:
        """Do nothing: the doctor changes nothing."""
