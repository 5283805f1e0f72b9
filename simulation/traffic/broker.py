"""The broker as its agent sees it: bundles that are loaded, and topics in a log that all share."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence

from agent.reports.host import HostUsage
from simulation.traffic.desk import Desk
from simulation.traffic.places import Places
from simulation.traffic.topic_log import TopicLog
from trimtab.migration.migration import Target
from trimtab.model import Epoch
from trimtab.store.ring import position
from trimtab.wire.reports.load_report import BundleStats, LocalBrokerData


class TrafficBroker:
    """Implements `agent.broker.Broker`. It serves nothing until it follows an agent."""

    def __init__(
        self,
        log: TopicLog,
        own: Sequence[str],
        host: Callable[[], HostUsage],
        web_url: str = "",
        pulsar_url: str = "",
    ) -> None:
        """``own``: bundles that are loaded at the start. ``host``: what the machine's part of a
        load report says."""
        self.started_ms = time.time_ns() // 1_000_000
        self.desk = Desk(log, self._token, self._green_for)
        self.desk.places = Places(own)
        self._host, self._web_url, self._pulsar_url = host, web_url, pulsar_url
        self._reported_at = time.monotonic()
        self.reported = LocalBrokerData()
        """The last load report."""
        self._token_of: Callable[[str], Epoch | None] = lambda _: None
        self._green_of: Callable[[str], Target | None] = lambda _: None

    def follow(
        self,
        token: Callable[[str], Epoch | None],
        green_for: Callable[[str], Target | None] = lambda _: None,
    ) -> None:
        """Serve what the agent says may be served: `agent.agent.Agent.token`."""
        self._green_of, self._token_of = green_for, token

    def bundles(self) -> frozenset[str]:
        return self.desk.places.bundles

    def load_report(self) -> LocalBrokerData:
        now = time.monotonic()
        with self.desk.lock:
            seconds, self._reported_at = max(0.001, now - self._reported_at), now
            rates_in = self._by_bundle(self.desk.taken, seconds)
            rates_out = self._by_bundle(self.desk.given, seconds)
            self.desk.taken.clear()
            self.desk.given.clear()
        loaded = sorted(self.bundles())
        self.reported = LocalBrokerData(
            **self._host()._asdict(),
            bundles=loaded,
            last_stats={
                each: BundleStats(msg_rate_in=rates_in[each], msg_rate_out=rates_out[each])
                for each in loaded
            },
            msg_rate_in=sum(rates_in.values()),
            msg_rate_out=sum(rates_out.values()),
            num_bundles=len(loaded),
            last_update=time.time_ns() // 1_000_000,
            start_timestamp=self.started_ms,
            web_service_url=self._web_url,
            pulsar_service_url=self._pulsar_url,
        )
        return self.reported

    def _by_bundle(self, counted: Counter[str], seconds: float) -> defaultdict[str, float]:
        rates: defaultdict[str, float] = defaultdict(float)
        for topic, messages in counted.items():
            bundle = self.desk.places.bundle_of(topic)
            if bundle is not None:
                rates[bundle] += messages / seconds
        return rates

    def prepare(self, bundle: str) -> None:
        """There is nothing to warm up."""

    def load(self, bundle: str) -> None:
        self._place(self.bundles() | {bundle})

    def unload(self, bundle: str) -> None:
        with self.desk.lock:
            left = Places([bundle])
            kept = {t: told for t, told in self.desk.restores.items() if not left.bundle_of(t)}
            self.desk.restores = kept
            self.desk.withheld = {t for t in self.desk.withheld if not left.bundle_of(t)}
            self._place(self.bundles() - {bundle})
            self.desk.attached.close_where(
                lambda topic: left.bundle_of(topic) is not None, f"{bundle} is unloaded"
            )

    def topics(self, bundle: str) -> dict[int, tuple[float, ...]]:
        with self.desk.lock:
            names = self.desk.log.names(bundle)
        return {position(name): (0.0, 0.0, 0.0, 0.0) for name in names}

    def split(self, bundle: str, children: Sequence[str]) -> None:
        self._place((self.bundles() - {bundle}) | set(children))

    def merge(self, parts: Sequence[str], whole: str) -> None:
        self._place((self.bundles() - set(parts)) | {whole})

    def _place(self, bundles: frozenset[str]) -> None:
        with self.desk.lock:
            self.desk.places = Places(bundles)

    def _token(self, bundle: str) -> Epoch | None:
        return self._token_of(bundle)

    def _green_for(self, topic: str) -> Target | None:
        return self._green_of(topic)
