"""The broker under test: how it is started, and how it shows what it serves (docs/wire.md)."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Mapping
from http.client import HTTPException
from pathlib import Path
from typing import Final, Protocol
from urllib.request import urlopen

import msgspec

from deploy.process import Process, ServerError
from trimtab.model import Epoch

START_S: Final = 60.0
"""The longest a program may take until it shows what it serves."""

REDIS: Final = "TRIMTAB_REDIS_URL"
CLUSTER: Final = "TRIMTAB_CLUSTER"
BROKER: Final = "TRIMTAB_BROKER"
SERVED: Final = "TRIMTAB_SERVED"

_served = msgspec.json.Decoder(dict[str, Epoch])


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """What a program is told, in its environment and in place of the words in its command."""

    redis: str
    cluster: str
    broker: str
    served: str
    """host:port at which it shows what it serves."""

    def environment(self) -> dict[str, str]:
        return {
            REDIS: self.redis,
            CLUSTER: self.cluster,
            BROKER: self.broker,
            SERVED: self.served,
        }


class Program(Protocol):
    """A broker that may be started and stopped."""

    def start(self) -> None:
        """Return once it shows what it serves; raises ServerError."""
        ...

    def stop(self) -> None:
        """Ask it to end, as SIGTERM does; returns once it has."""
        ...

    def end(self) -> None:
        """End it at once if it still runs."""
        ...


class Started:
    """A program of a command line: ``{redis}``, ``{cluster}``, ``{broker}``, ``{served}`` in it are
    filled in."""

    def __init__(self, template: str, told: Told, folder: Path) -> None:
        words = msgspec.structs.asdict(told)
        command = [_filled(part, words) for part in _parts(template)]
        self._served = told.served
        self._process = Process(
            "the broker under test",
            command,
            folder=folder,
            log=folder / f"{told.cluster}.log",
            environment={**os.environ, **told.environment()},
            whole=True,
        )

    def start(self) -> None:
        page: dict[str, Epoch] | str = ""

        def shows() -> bool:
            nonlocal page
            page = _look(self._served)
            return not isinstance(page, str)

        try:
            self._process.start(shows, START_S)
        except ServerError as error:
            raise ServerError(f"{error}\n{page}") from None

    def stop(self) -> None:
        self._process.stop()

    def end(self) -> None:
        self._process.kill()


WORDS: Final = Told.__struct_fields__
"""What a command may have in braces."""


class InvalidCommand(ValueError):
    """A command line that names no program; the text says why."""


def unfilled(template: str) -> list[str]:
    """The words in braces that look like one of `WORDS`, but are not."""
    found = re.findall(r"(?<!\$)\{[a-z]+\}", template)
    return [word for word in found if word[1:-1] not in WORDS]


def _parts(template: str) -> list[str]:
    """The command's parts, as a shell parts them; raises InvalidCommand."""
    try:
        parts = shlex.split(template)
    except ValueError as error:
        raise InvalidCommand(f"the command {template!r}: {error}") from None
    if not parts:
        raise InvalidCommand("the command is empty: give what starts the broker")
    return parts


def _filled(part: str, words: Mapping[str, str]) -> str:
    # Not str.format: a command may have braces of its own.
    for word, value in words.items():
        part = part.replace(f"{{{word}}}", value)
    return part


def shown(served: str) -> dict[str, Epoch] | None:
    """The bundles that the program serves now, with their tokens; None if it does not answer."""
    page = _look(served)
    return None if isinstance(page, str) else page


def _look(served: str) -> dict[str, Epoch] | str:
    """What the program serves, or why that is not known."""
    url = f"http://{served}/served"
    try:
        with urlopen(url, timeout=2.0) as answer:
            return _served.decode(answer.read())
    except (OSError, HTTPException) as error:
        return f"GET {url}: {error}"
    except msgspec.MsgspecError as error:
        return f"GET {url} answers no JSON object of bundles to epochs: {error}"


Launch = Callable[[Told], Program]
