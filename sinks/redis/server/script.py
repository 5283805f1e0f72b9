"""A Lua script, and how it is run on a server: by its SHA-1, loaded where the server lacks it.

The texts are in `sinks.redis.scripts`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha1
from types import MappingProxyType
from typing import Any, Self

import redis
from redis.exceptions import NoScriptError

from sinks.errors import Isolated, StoreUnavailable
from sinks.redis.server.connections import address, look_again, translate_errors

NO_MASTER: Mapping[str, tuple[type[StoreUnavailable], str]] = MappingProxyType(
    {
        "replica": (StoreUnavailable, "is a replica: it has lost its place as the master"),
        "isolated": (
            Isolated,
            "hears {} of the replicas that must acknowledge: another may be the master",
        ),
    }
)
"""Script answers after which the caller retries later, on this server or another."""


def no_master(client: redis.Redis, status: str, detail: str = "") -> StoreUnavailable:
    """The error for one of NO_MASTER. The address is resolved again before the next command."""
    kind, text = NO_MASTER[status]
    look_again(client)
    return kind(f"Redis at {address(client)} {text.format(detail)}")


@dataclass(frozen=True, slots=True)
class Script:
    """A script's text and the SHA-1 that EVALSHA calls it by."""

    text: str
    sha: str

    @classmethod
    def of(cls, *parts: str) -> Self:
        """Join the parts of a text; the first begins with the shebang."""
        text = "\n".join(parts)
        return cls(text, sha1(text.encode(), usedforsecurity=False).hexdigest())


def run(
    client: redis.Redis,
    script: Script,
    keys: Sequence[str | bytes],
    arguments: Sequence[str | bytes],
) -> list[str]:
    """Run a script and return its answer; loads it if the server does not know it yet.

    Raises StoreUnavailable and Misconfigured.
    """
    try:
        return run_loaded(client, script, keys, arguments)
    except NoScriptError:
        with translate_errors(client):
            client.script_load(script.text)
    try:
        return run_loaded(client, script, keys, arguments)
    except NoScriptError as error:
        raise StoreUnavailable(
            f"Redis at {address(client)} forgot a script at once: it restarted, or somebody calls "
            "SCRIPT FLUSH"
        ) from error


def run_for_each(
    client: redis.Redis, script: Script, calls: Sequence[tuple[Sequence[str], Sequence[str]]]
) -> None:
    """Run a script with each of the keys and arguments, in one round trip, for callers that need
    no answer. Raises StoreUnavailable and Misconfigured."""
    with translate_errors(client), client.pipeline(transaction=False) as together:
        for keys, arguments in calls:
            together.evalsha(script.sha, len(keys), *keys, *arguments)
        answers = together.execute(raise_on_error=False)
    # One that failed is run alone: a script that is not loaded yet, or an error that is raised.
    for (keys, arguments), answer in zip(calls, answers, strict=True):
        if isinstance(answer, Exception):
            run(client, script, keys, arguments)


def run_loaded(
    client: redis.Redis,
    script: Script,
    keys: Sequence[str | bytes],
    arguments: Sequence[str | bytes],
) -> list[str]:
    """Run it for callers that may not load scripts; also raises NoScriptError."""
    with translate_errors(client):
        # Any: redis-py's answers are unions over protocols; ours is RESP2, bytes.
        answer: Any = client.evalsha(script.sha, len(keys), *keys, *arguments)
    # An answer may quote a record, which any client may have written.
    return [part.decode(errors="replace") for part in answer]
