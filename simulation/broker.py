"""A broker without topics: its loaded bundles are a set, and its load follows that set."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from simulation.load_model import LoadModel
from trimtab.wire.reports.load_report import LocalBrokerData


class SimulatedBroker:
    """Implements ``agent.broker.Broker``. ``loaded`` may be read from any thread."""

    def __init__(
        self, model: LoadModel, row: int, loaded: Iterable[str], now_ms: Callable[[], int]
    ) -> None:
        self._model = model
        self._name = model.brokers[row]
        self._loaded = frozenset(loaded)
        self._now_ms = now_ms
        self.started_ms = now_ms()
        # Its own stream of noise, so that threads cannot change what another broker reports.
        self._rng = np.random.default_rng((model.profile.seed, row))

    def bundles(self) -> frozenset[str]:
        return self._loaded

    def usage(self) -> float:
        """Expected usage, a fraction, free of noise."""
        return self._model.usage(self._loaded)

    def load_report(self) -> LocalBrokerData:
        report = self._model.report(self._name, self._loaded, self._now_ms(), self._rng)
        report.start_timestamp = self.started_ms
        return report

    def prepare(self, bundle: str) -> None:
        """There is nothing to warm up."""

    # Each change is a new set, so that readers never see a half-changed one.
    def load(self, bundle: str) -> None:
        self._loaded |= {bundle}

    def unload(self, bundle: str) -> None:
        self._loaded -= {bundle}

    def topics(self, bundle: str) -> Mapping[int, tuple[float, ...]]:
        return self._model.topics(bundle)

    def split(self, bundle: str, children: Sequence[str]) -> None:
        self._loaded = (self._loaded - {bundle}) | set(children)

    def merge(self, parts: Sequence[str], whole: str) -> None:
        self._loaded = (self._loaded - set(parts)) | {whole}
