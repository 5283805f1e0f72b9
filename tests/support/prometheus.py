"""A real Prometheus, and promtool, from Debian's package ``prometheus``."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Self
from urllib.error import URLError
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest

from deploy.ports import free_port
from deploy.process import Process

DEPLOY: Final = Path(__file__).parents[2] / "deploy"
CONFIG: Final = DEPLOY / "prometheus" / "prometheus.yml"
RULES: Final = DEPLOY / "alerts" / "trimtab.yml"

needs_prometheus = pytest.mark.skipif(
    shutil.which("promtool") is None or shutil.which("prometheus") is None,
    reason="Prometheus is not installed: sudo apt-get install prometheus",
)


def promtool(*arguments: str, text: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """Run it; ``text`` is its stdin."""
    command = ["promtool", *arguments]
    return subprocess.run(command, input=text, capture_output=True, check=False, timeout=60)


class Prometheus:
    """With the deployed configuration, but for the targets, and one scrape a second."""

    def __init__(self, folder: Path, targets: Mapping[str, str]) -> None:
        """``targets``: an address in the configuration, and the one to scrape instead."""
        config = CONFIG.read_text("utf-8").replace(": 5s", ": 1s")
        config = config.replace("../alerts/trimtab.yml", str(RULES))
        for usual, target in targets.items():
            assert usual in config, usual
            config = config.replace(usual, target)
        file = folder / "prometheus.yml"
        file.write_text(config, "utf-8")
        address = f"127.0.0.1:{free_port()}"
        self._url = f"http://{address}"
        self._process = Process(
            "prometheus",
            [
                *("prometheus", f"--config.file={file}"),
                f"--storage.tsdb.path={folder / 'prometheus'}",
                f"--web.listen-address={address}",
            ],
            folder=folder,
            log=folder / "prometheus.log",
        )

    def __enter__(self) -> Self:
        self._process.start(self._is_ready, 120.0)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.stop()

    def _is_ready(self) -> bool:
        try:
            with urlopen(f"{self._url}/-/ready", timeout=2):
                return True
        except (URLError, OSError):
            return False

    def ask(self, path: str, **query: str) -> Any:
        """``data`` of an answer of its API."""
        with urlopen(f"{self._url}/api/v1/{path}?{urlencode(query)}", timeout=30) as answer:
            return json.load(answer)["data"]

    def has(self, expr: str, start: float) -> bool:
        """Whether the query has had a number at some moment since then (Unix time)."""
        now = str(time.time())
        found = self.ask("query_range", query=expr, start=str(start), end=now, step="1")
        values = (value for series in found["result"] for _, value in series["values"])
        return any(not math.isnan(float(value)) for value in values)
