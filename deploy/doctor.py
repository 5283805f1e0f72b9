"""Checks what is missing before trimtab can run, each with the next command to type."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType

from deploy import jars, service_checks
from deploy.finding import Finding, bad, good
from deploy.kafka_server import java

__all__ = ["Finding", "examine"]

OLDEST_PYTHON = (3, 11)
OLDEST_JAVA = 17
INSTALL_JDK = "sudo apt-get install openjdk-17-jdk-headless"
# For a demo's checkpoints, Kafka log and Redis file; a full disk stops all three at once.
DISK_BYTES = 2 * 1024**3

_LOCKED = re.compile(r"^([a-z0-9._-]+)==([^ ;\\]+)( ;)?", re.MULTILINE)


def examine(
    *,
    kafka: str | int | None = None,
    redis: str | int | None = None,
    redis_replicas: int | None = None,
    kafka_client: Mapping[str, str] = MappingProxyType({}),
    run_dir: Path | None = None,
) -> list[Finding]:
    """Run all checks; `kafka` and `redis` as for Stack: an address to use, or a port to start at.

    `redis_replicas` is the job's setting of that name, `kafka_client` librdkafka's options.
    `run_dir` is where the job or the demo writes, the current folder if none is given.
    """
    return [
        check_python(),
        check_jdk(),
        check_packages(),
        check_jars(),
        check_disk(run_dir or Path.cwd()),
        *service_checks.check_kafka(kafka, kafka_client),
        *service_checks.check_redis(redis, redis_replicas),
    ]


def check_python() -> Finding:
    found = "{}.{}.{}".format(*sys.version_info)
    if sys.version_info < OLDEST_PYTHON:
        return bad("Python", f"{found}, needs 3.11 or newer", "make PYTHON=python3.11 .venv")
    return good("Python", f"{found} at {sys.executable}")


def check_jdk() -> Finding:
    home = os.environ.get("JAVA_HOME")
    try:
        # One call shows the version and whether this is a trimmed runtime.
        output = subprocess.run(
            [java(), "--list-modules"], capture_output=True, text=True, check=False, timeout=30
        ).stdout
    except OSError:
        if home:
            return bad("JDK", f"JAVA_HOME={home} has no bin/java", "unset JAVA_HOME")
        return bad("JDK", "no java on the PATH", INSTALL_JDK)
    found = re.search(r"^java\.base@((\d+)\S*)", output, re.MULTILINE)
    if not found or int(found[2]) < OLDEST_JAVA:
        return bad(
            "JDK", f"{found[1] if found else 'something else'}, needs 17 or newer", INSTALL_JDK
        )
    if "jdk.incubator.vector@" not in output:
        return bad("JDK", f"{found[1]} lacks jdk.incubator.vector, which Spark loads", INSTALL_JDK)
    return good("JDK", f"{found[1]} at {shutil.which(java())}")


def check_packages() -> Finding:
    """Compare with the locked set, which was tested: PySpark's own bounds allow broken pairs."""
    lock = files("deploy").joinpath("requirements.lock")
    wrong = list(_differences(lock.read_text("utf-8"))) or list(_unloadable())
    if wrong:
        return bad(
            "packages",
            "; ".join(wrong),
            f"{sys.executable} -m pip install --require-hashes -r {lock}",
        )
    return good("packages", f"as locked; PySpark {version('pyspark')}")


def check_jars() -> Finding:
    problems = jars.verify()
    if problems:
        first = f"{problems[0].jar.path.name}: {problems[0].what}"
        return bad("jars", f"{len(problems)} of {len(jars.list_locked())} ({first})", jars.FETCH)
    return good("jars", f"{len(jars.list_locked())} as locked in {jars.cache_dir()}")


def check_disk(folder: Path) -> Finding:
    while not folder.exists():
        folder = folder.parent
    free = shutil.disk_usage(folder).free
    detail = f"{free / 1024**3:.1f} GiB free at {folder}"
    if free < DISK_BYTES:
        return bad(
            "disk", f"{detail}, needs {DISK_BYTES / 1024**3:.0f}", f"du -xsh {folder}/* | sort -h"
        )
    return good("disk", detail)


def _differences(lock: str) -> Iterator[str]:
    for name, wanted, marked in _LOCKED.findall(lock):
        try:
            found = version(name)
        except PackageNotFoundError:
            # With a marker it may be meant for another system.
            if not marked:
                yield f"{name} is missing (locked {wanted})"
            continue
        if found != wanted:
            yield f"{name} {found} (locked {wanted})"


def _unloadable() -> Iterator[str]:
    """Packages without which Spark's Python worker only reports that it could not connect back."""
    for name in ("pandas", "pyarrow", "google.protobuf"):
        try:
            import_module(name)
        except ImportError as error:
            yield f"{name} cannot be imported: {error}"
