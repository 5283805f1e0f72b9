"""The server's certificates, which rotate without a restart."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Sequence
from pathlib import Path

import structlog

log = structlog.get_logger()


def follow_files(build: Callable[[], ssl.SSLContext], files: Sequence[Path]) -> ssl.SSLContext:
    """A context for a server, made again for the first handshake after one of its files changed.

    ``build`` makes one of the files. While they cannot be used, as between the writing of a
    certificate and of its key, the last good context stays in force.
    """
    first = build()
    current, seen = first, _stamps(files)

    def choose(link: ssl.SSLSocket | ssl.SSLObject, _: str | None, __: ssl.SSLContext) -> None:
        nonlocal current, seen
        if (now := _stamps(files)) != seen:
            try:
                current, seen = build(), now
            except (OSError, ssl.SSLError) as error:
                log.warning("new certificates cannot be used", cause=str(error))
        link.context = current

    first.sni_callback = choose
    return first


def _stamps(files: Sequence[Path]) -> list[tuple[int, int]]:
    found = []
    for file in files:
        try:
            state = file.stat()
        except OSError:
            found.append((0, 0))
        else:
            found.append((state.st_mtime_ns, state.st_size))
    return found
