"""Plays the rules against a broker, each in a cluster of its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, NamedTuple

from redis import RedisError

from admin.conformance.line import Line
from admin.conformance.program import Launch, Program, Started, Told
from admin.conformance.rules import RULES
from admin.conformance.sight import Broken
from admin.conformance.stage import Stage
from deploy.ports import LOOPBACK, free_port
from deploy.process import ServerError
from sinks.errors import SinkError
from sinks.redis.server.connections import redis_client

AT_ONCE: Final = 6
"""Rules played at a time: most of the time is spent waiting for leases."""

_BROKER: Final = f"{LOOPBACK}:1"


class Verdict(NamedTuple):
    """Whether a rule is kept."""

    rule: str
    reason: str
    """What was seen instead; empty if it is kept."""


def started(template: str, folder: Path) -> Launch:
    """Programs of a command line."""

    def launch(told: Told) -> Program:
        return Started(template, told, folder)

    return launch


def try_start(redis: str, launch: Launch, cluster: str = "conformance") -> None:
    """Raise ServerError, with what the program printed, if it does not start at all."""
    program = launch(_told(redis, cluster))
    try:
        program.start()
    finally:
        program.end()


def play(
    redis: str,
    launch: Launch,
    names: Iterable[str] = RULES,
    prefix: str = "conformance",
    at_once: int = AT_ONCE,
) -> Iterator[Verdict]:
    """The verdicts, in the order of the rules; ``redis`` is a URL."""

    def judged(name: str) -> Verdict:
        return _judge(redis, launch, name, f"{prefix}-{name}")

    with ThreadPoolExecutor(at_once) as pool:
        yield from pool.map(judged, names)


def _judge(redis: str, launch: Launch, name: str, cluster: str) -> Verdict:
    with redis_client(redis) as client, Line(redis) as line:
        stage = Stage(client, _told(line.url, cluster), launch, line)
        try:
            RULES[name].play(stage)
        except (Broken, ServerError, SinkError, RedisError) as error:
            refused = f"; last refused: {line.refusal}" if line.refusal else ""
            return Verdict(name, f"{error}{refused}")
        finally:
            stage.leave()
    return Verdict(name, "")


def _told(redis: str, cluster: str) -> Told:
    return Told(redis=redis, cluster=cluster, broker=_BROKER, served=f"{LOOPBACK}:{free_port()}")
