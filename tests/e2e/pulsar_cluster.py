"""A real Pulsar cluster and its load, from the scripts that `test_real_pulsar` asks for."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import msgspec

from deploy.process import Process

NAMESPACE = "load/real"
BUNDLES = 16
TOPICS = 24

_START_SECONDS = 400.0
_STOP_SECONDS = 60.0

# A broker counts its traffic again each 60 s unless it is told otherwise; its CPU always.
_CONFIGURATION = "statsUpdateFrequencyInSecs=5\nstatsUpdateInitialDelayInSecs=5"

_READY = re.compile(r"ready (http://\S+) (pulsar://\S+)")


@contextmanager
def running(scripts: Path, brokers: int, logs: Path) -> Iterator[list[str]]:
    """The web service URLs of a fresh cluster."""
    with serving(scripts, brokers, logs, "modular") as urls:
        yield [web for web, _ in urls]


@contextmanager
def serving(
    scripts: Path, brokers: int, logs: Path, manager: str
) -> Iterator[list[tuple[str, str]]]:
    """Of each broker of a fresh cluster with that load manager: the web and the service URL."""
    with ExitStack() as started:
        started.callback(_run, [scripts / "down.sh"], logs / "down.log", _STOP_SECONDS)
        # Its servers outlive the script and keep what it writes to: a file, not a pipe.
        log = logs / "up.log"
        _run([scripts / "up.sh", str(brokers), manager], log, _START_SECONDS)
        urls: list[tuple[str, str]] = _READY.findall(log.read_text())
        if len(urls) != brokers:
            raise RuntimeError(f"{len(urls)} of {brokers} Pulsar brokers came up; see {log}")
        yield urls


def prepare(urls: list[str]) -> None:
    """A namespace to load, skewed, and heartbeat bundles as a fleet that is watched has them."""
    (cluster,) = ask(urls[0], "/admin/v2/clusters")
    tenant = {"allowedClusters": [cluster], "adminRoles": []}
    ask(urls[0], f"/admin/v2/tenants/{NAMESPACE.split('/')[0]}", tenant)
    ask(urls[0], f"/admin/v2/namespaces/{NAMESPACE}", {"bundles": {"numBundles": BUNDLES}})
    skewed = [url for idler, url in enumerate(reversed(urls)) for _ in range(idler + 1)]
    for topic in range(TOPICS):
        # The broker that is asked takes the topic's bundle if none has it. Left to themselves all
        # would go to those whose first CPU value, which looks idle, still stands.
        owner = skewed[topic % len(skewed)]
        ask(owner, f"/lookup/v2/topic/persistent/{NAMESPACE}/topic-{topic}?authoritative=true")
    for url in urls:
        with urlopen(f"{url}/admin/v2/brokers/health", timeout=30) as answer:
            answer.read()


def ask(url: str, path: str, body: object = None) -> Any:
    """GET, or PUT if there is a body; the answer's JSON."""
    data = None if body is None else msgspec.json.encode(body)
    request = Request(
        url + path,
        data,
        {"Content-Type": "application/json"},
        method="GET" if data is None else "PUT",
    )
    with urlopen(request, timeout=30) as answer:
        said = answer.read()
    return msgspec.json.decode(said) if said else None


@contextmanager
def load(scripts: Path, folder: Path, rate: int = 600) -> Iterator[None]:
    """Messages of 1 KiB, so many a second over all topics, read as they come."""
    # The default heap of pulsar-perf is more than this load needs.
    environment = {**os.environ, "PERF_HEAP": "600m"}
    topics = ["-t", str(TOPICS), f"persistent://{NAMESPACE}/topic"]
    commands = (["consume", "-ss", "reader"], ["produce", "-r", str(rate), "-s", "1024"])
    with ExitStack() as started:
        for command in commands:
            process = Process(
                command[0],
                [str(scripts / "pulsar-perf"), *command, *topics],
                folder=folder,
                log=folder / f"{command[0]}.log",
                environment=environment,
            )
            started.callback(process.stop)
            process.start(lambda: process.running, 10.0)  # noqa: B023 - start() is done with it
        yield


def _run(command: list[Path | str], log: Path, seconds: float) -> None:
    environment = {**os.environ, "EXTRA_CONF": _CONFIGURATION}
    with log.open("wb") as output:
        subprocess.run(
            command,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=environment,
            timeout=seconds,
            check=True,
        )
