"""The machine a run was made on."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib.metadata import version
from pathlib import Path

import psutil

from benchmarks.figures import Machine, rounded
from deploy.kafka_server import java

_PACKAGES = ("pyspark", "pyarrow", "numpy", "msgspec", "redis", "confluent-kafka")

Load = tuple[float, float, float]


def load() -> Load:
    return os.getloadavg()


def machine(before: Load) -> Machine:
    """This machine as it is now, with the load average from before the run."""
    return Machine(
        cores=os.cpu_count() or 0,
        processor=_processor(),
        memory_gib=rounded(psutil.virtual_memory().total / 2**30),
        load_before=before,
        load_after=load(),
        versions={
            "python": platform.python_version(),
            "java": _java(),
            **{package: version(package) for package in _PACKAGES},
        },
    )


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())


def _java() -> str:
    said = subprocess.run([java(), "-version"], capture_output=True, text=True, check=True)
    return said.stderr.split('"')[1]
