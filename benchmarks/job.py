"""`trimtab-job` as a process of its own, and what its metrics say of it meanwhile."""

from __future__ import annotations

import json
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Self
from urllib.error import URLError

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from deploy import jars
from deploy.ports import LOOPBACK, free_port
from deploy.process import Process
from deploy.stack import Stack
from trimtab.metrics import job as metrics
from trimtab.metrics.metric import Metric, MetricKind

_COMMAND: Final = "from streaming.job import main; main()"
_START_SECONDS: Final = 120.0


class JobProcess:
    """``with`` starts and stops it."""

    def __init__(
        self, stack: Stack, folder: Path, settings: str, trigger_s: float | None = 0.0
    ) -> None:
        """``trigger_s``: 0 runs batches back to back; None: as the job does by itself."""
        folder.mkdir()
        self.checkpoint = folder / "checkpoint"
        port = free_port()
        self._url = f"http://{LOOPBACK}:{port}/metrics"
        config = folder / "job.toml"
        trigger = "" if trigger_s is None else f"trigger_seconds = {trigger_s}\n"
        config.write_text(
            f"redis_url = {json.dumps(stack.redis_url)}\n"
            f"checkpoint = {json.dumps(str(self.checkpoint))}\n"
            f"{trigger}"
            f"metrics_port = {port}\n"
            f"[kafka]\nbootstrap = {json.dumps(stack.kafka_bootstrap)}\n"
            f"[spark]\njars = {json.dumps([str(jar) for jar in jars.connector_jars()])}\n"
            f"{settings}"
        )
        command = [sys.executable, "-c", _COMMAND, "--config", str(config)]
        self._process = Process("trimtab-job", command, folder=folder, log=folder / "job.log")

    def __enter__(self) -> Self:
        self._process.start(self._ready, _START_SECONDS)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.stop()

    @property
    def pid(self) -> int:
        return self._process.pid

    def stages(self) -> dict[str, float]:
        """Seconds of each stage of the last batch, by Spark's account."""
        (label,) = metrics.BATCH_STAGE.labels
        return {sample.labels[label]: sample.value for sample in self._samples(metrics.BATCH_STAGE)}

    def total(self, metric: Metric) -> float:
        """The sum of a metric's series, of a counter since the process began."""
        return sum(sample.value for sample in self._samples(metric))

    def kill_and_start(self) -> None:
        """End it as kill -9 does, and start it again on its checkpoint; returns once it serves
        metrics."""
        self._process.kill()
        self._process.start(self._ready, _START_SECONDS)

    def _samples(self, metric: Metric) -> Iterator[Sample]:
        name = metric.name + ("_total" if metric.kind is MetricKind.COUNTER else "")
        for family in text_string_to_metric_families(self._metrics()):
            yield from (sample for sample in family.samples if sample.name == name)

    def _ready(self) -> bool:
        try:
            return bool(self._metrics())
        except URLError:
            return False

    def _metrics(self) -> str:
        with urllib.request.urlopen(self._url, timeout=5) as answer:
            content: bytes = answer.read()
        return content.decode()
