"""The processes of a demo besides Kafka and Redis: the job and the fleet, each with its log."""

from __future__ import annotations

import fcntl
import json
import os
import shlex
import shutil
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Final

from deploy import jars
from deploy.ports import free_port, is_free
from deploy.process import Process
from deploy.stack import Stack
from simulation.profile import Profile, read_profile

METRICS_PORT: Final = 9780
API_PORT: Final = 9781
AGENTS_PORT: Final = 9782
GOAL: Final = 10.0
"""Points between brokers: twice the planner's target, as it plans through the reports' noise."""
REPORT_SECONDS: Final = 1.0
ENVIRONMENT: Final = "environment"
"""File of the demo's folder: the addresses of its servers, for other commands."""
_LOG_LINES: Final = 20


class DemoFailed(RuntimeError):
    """The demo cannot continue; the message says what to look at."""


@contextmanager
def clean_folder(folder: Path) -> Iterator[None]:
    """Provide an empty `folder` that no other demo uses meanwhile."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_suffix(".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise DemoFailed(
                f"another demo is using {folder}. See who: fuser -v {lock.name}"
            ) from None
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        yield


def settings_file(folder: Path, name: str) -> Path:
    """Copy one of the committed files next to the logs of the run that uses it."""
    copy = folder / name
    copy.write_text(files("deploy").joinpath(name).read_text("utf-8"), "utf-8")
    return copy


def environment_file(folder: Path, stack: Stack) -> Path:
    """Write the addresses of the servers for a shell; for its owner alone, as one is secret."""
    path = folder / ENVIRONMENT
    path.touch(mode=0o600)
    addresses = {
        "TRIMTAB_KAFKA__BOOTSTRAP": stack.kafka_bootstrap,
        "TRIMTAB_REDIS_URL": stack.redis_url,
    }
    lines = (f"export {name}={shlex.quote(value)}\n" for name, value in addresses.items())
    path.write_text("".join(lines), "utf-8")
    return path


def fleet_profile(path: Path, given: Mapping[str, int | None]) -> Profile:
    """The committed fleet with the given changes; raises InvalidProfile."""
    profile = read_profile(path)
    changes = {name: number for name, number in given.items() if number is not None}
    bundles = changes.get("bundles", profile.bundles)
    # A smaller fleet has fewer namespaces too; each needs a bundle.
    changes["namespaces"] = max(1, min(profile.namespaces, bundles))
    return replace(profile, **changes)


def port_near(usual: int) -> int:
    """The usual port of a service, or another where that is taken."""
    return usual if is_free(usual) else free_port()


def spark_jars() -> str:
    """The connector's jars as the job's setting ``spark.jars`` in the environment."""
    return json.dumps([str(jar) for jar in jars.connector_jars()])


def job(folder: Path, stack: Stack, port: int) -> Process:
    """The job's process. Redis's password is in the environment, as command lines are public."""
    return Process(
        "the job",
        [str(Path(sysconfig.get_path("scripts")) / "trimtab-job"), "--config", "demo_job.toml"],
        folder=folder,
        log=folder / "job.log",
        environment=_environment(
            TRIMTAB_KAFKA__BOOTSTRAP=stack.kafka_bootstrap,
            TRIMTAB_REDIS_URL=stack.redis_url,
            TRIMTAB_CHECKPOINT=str(folder / "checkpoint"),
            TRIMTAB_METRICS_PORT=str(port),
            TRIMTAB_SPARK__JARS=spark_jars(),
        ),
    )


def api(folder: Path, stack: Stack, port: int) -> Process:
    """The process of the control plane, open to everybody on this machine."""
    return Process(
        "the API",
        [str(Path(sysconfig.get_path("scripts")) / "trimtab"), "api", "--port", str(port)],
        folder=folder,
        log=folder / "api.log",
        environment=_environment(
            TRIMTAB_KAFKA__BOOTSTRAP=stack.kafka_bootstrap, TRIMTAB_REDIS_URL=stack.redis_url
        ),
    )


def fleet(folder: Path, stack: Stack, profile: Profile, port: int) -> Process:
    """The fleet's process; its log has the snapshots among its other lines. ``port``: of its
    agents' metrics."""
    command = [sys.executable, "-m", "simulation", "--profile", "demo_fleet.toml"]
    for name in ("brokers", "bundles", "namespaces", "seed"):
        command += [f"--{name}", str(getattr(profile, name))]
    command += ["--kafka", stack.kafka_bootstrap, "--report-interval", str(REPORT_SECONDS)]
    command += ["--metrics-port", str(port)]
    return Process(
        "the fleet",
        command,
        folder=folder,
        log=folder / "fleet.log",
        environment=_environment(TRIMTAB_REDIS_URL=stack.redis_url),
    )


def check(*processes: Process) -> None:
    """Raise DemoFailed, with the end of the log, if a process has ended."""
    for process in processes:
        if not process.running:
            lines = process.log.read_text("utf-8", errors="replace").splitlines()
            end = "\n".join(lines[-_LOG_LINES:])
            raise DemoFailed(
                f"{process.name} ended; the end of {process.log}:\n{end}\nNext: trimtab doctor"
            )


def _environment(**ours: str) -> dict[str, str]:
    """This process's environment, without trimtab's settings meant for a real fleet."""
    theirs = {k: v for k, v in os.environ.items() if not k.startswith("TRIMTAB_")}
    return theirs | ours
