"""The shedders once more, as plain as can be: loops over dicts, straight from Pulsar's description.

Slow on purpose and sharing nothing with trimtab's columns but the settings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from trimtab.settings import Settings
from trimtab.view import View

Wish = tuple[str, str, str | None]
"""Bundle, source, destination."""


@dataclass
class PlainBroker:
    name: str
    usage: float
    rate: float
    throughput: float
    listed: int
    bundles: list[PlainBundle] = field(default_factory=list)


@dataclass
class PlainBundle:
    name: str
    rate: float
    throughput: float


def brokers_of(view: View, settings: Settings) -> list[PlainBroker]:
    """A view as objects; bundles that must not move are left out."""
    weights = settings.weights
    brokers = []
    for row, name in enumerate(view.brokers.names):
        cpu, _, direct, into, out = (float(value) for value in view.brokers.resources[:, row])
        usage = max(
            cpu * weights.cpu,
            direct * weights.direct_memory,
            into * weights.bandwidth_in,
            out * weights.bandwidth_out,
        )
        rate_in, rate_out, bytes_in, bytes_out = map(float, view.brokers.traffic[:, row])
        listed = int(view.brokers.listed[row])
        brokers.append(
            PlainBroker(name, usage / 100, rate_in + rate_out, bytes_in + bytes_out, listed)
        )
    for row, name in enumerate(view.bundles.names):
        if view.bundles.movable[row]:
            rate_in, rate_out, bytes_in, bytes_out = map(float, view.bundles.short[:, row])
            bundle = PlainBundle(name, rate_in + rate_out, bytes_in + bytes_out)
            brokers[view.bundles.owner[row]].bundles.append(bundle)
    return brokers


class PlainThreshold:
    """ThresholdShedder; ``average`` is its history."""

    def __init__(self) -> None:
        self.average: dict[str, float] = {}

    def shed(self, view: View, settings: Settings) -> list[Wish]:
        brokers = brokers_of(view, settings)
        live = {broker.name for broker in brokers}
        self.average = {name: value for name, value in self.average.items() if name in live}
        threshold, floor = settings.threshold.threshold, settings.threshold.min_throughput
        mean = self._refresh(brokers, settings)
        if mean == 0:
            return []
        wishes: list[Wish] = []
        for broker in brokers:
            average = self.average[broker.name]
            if average < mean + threshold:
                continue
            need = broker.throughput * (average - mean - threshold + 0.05)
            if need >= floor and broker.listed > 1:
                wishes += _pick(broker, need)
        if not wishes and settings.threshold.lower_boundary:
            wishes = self._lower_boundary(brokers, settings)
        return wishes

    def _refresh(self, brokers: list[PlainBroker], settings: Settings) -> float:
        kept, total = settings.weights.history, 0.0
        for broker in brokers:
            if broker.name in self.average:
                past = self.average[broker.name]
                self.average[broker.name] = past * kept + (1 - kept) * broker.usage
            else:
                self.average[broker.name] = broker.usage
            total += self.average[broker.name]
        return total / len(brokers) if brokers else 0.0

    def _lower_boundary(self, brokers: list[PlainBroker], settings: Settings) -> list[Wish]:
        threshold = settings.threshold.threshold
        mean = self._refresh(brokers, settings)
        busiest, highest, below = None, mean - threshold, False
        for broker in brokers:
            average = self.average[broker.name]
            if average > highest and broker.listed > 1:
                highest, busiest = average, broker
            if average < mean - threshold:
                below = True
        if not below or busiest is None:
            return []
        need = busiest.throughput * threshold * 0.5
        return _pick(busiest, need) if need >= settings.threshold.min_throughput else []


def _pick(broker: PlainBroker, need: float) -> list[Wish]:
    wishes: list[Wish] = []
    marked = 0.0
    for bundle in sorted(broker.bundles, key=lambda b: -b.throughput):
        if marked < need or not wishes:
            wishes.append((bundle.name, broker.name, None))
            marked += bundle.throughput
    return wishes


class PlainOverload:
    """OverloadShedder; it remembers nothing."""

    def shed(self, view: View, settings: Settings) -> list[Wish]:
        limit = settings.round.overloaded_threshold
        wishes: list[Wish] = []
        for broker in brokers_of(view, settings):
            if broker.usage >= limit and broker.listed > 1:
                wishes += _pick(broker, broker.throughput * (broker.usage - limit + 0.05))
        return wishes


class PlainUniform:
    """UniformLoadShedder in unbounded integers; it remembers nothing."""

    def shed(self, view: View, settings: Settings) -> list[Wish]:
        brokers, limits = brokers_of(view, settings), settings.uniform
        if not brokers:
            return []
        rate = Extremes(brokers, lambda each: each.rate)
        if limits.rate_difference > 0 and rate.percent > limits.rate_difference:
            return rate.shed(settings.unload.min_rate, settings)
        bytes_ = Extremes(brokers, lambda each: each.throughput)
        if limits.throughput_ratio > 0 and bytes_.ratio > limits.throughput_ratio:
            return bytes_.shed(settings.unload.min_throughput, settings)
        return []


class Extremes:
    """The brokers with the most and the least of one measure."""

    def __init__(
        self,
        brokers: list[PlainBroker],
        measure: Callable[[PlainBroker | PlainBundle], float],
    ) -> None:
        self._measure = measure
        self._source = brokers[0]
        for broker in brokers:
            if measure(broker) > measure(self._source):
                self._source = broker
        least = min(measure(broker) for broker in brokers)
        least = 1.0 if least <= 1e-6 else least
        most = measure(self._source)
        self._gap = most - least
        self.percent = (most - least) * 100 / least
        self.ratio = most / least

    def shed(self, minimum: float, settings: Settings) -> list[Wish]:
        left, cap = int(self._gap * settings.unload.max_share), settings.unload.max_bundles
        wishes: list[Wish] = []
        if self._source.listed <= 1 or left < minimum:
            return wishes
        for bundle in sorted(self._source.bundles, key=lambda b: -self._measure(b)):
            if cap != -1 and len(wishes) >= cap:
                break
            if self._measure(bundle) <= left + 1000:
                wishes.append((bundle.name, self._source.name, None))
                left -= int(self._measure(bundle))
        return wishes


class PlainAvg:
    """AvgShedder; ``low`` and ``high`` are its hits, kept for live brokers only."""

    def __init__(self) -> None:
        self.low: dict[str, int] = {}
        self.high: dict[str, int] = {}

    def shed(self, view: View, settings: Settings) -> list[Wish]:
        limits = settings.avg
        order = sorted(brokers_of(view, settings), key=lambda broker: broker.usage * 100)
        live = {broker.name for broker in order}
        self.low = {name: hits for name, hits in self.low.items() if name in live}
        self.high = {name: hits for name, hits in self.high.items() if name in live}
        pairs = []
        first, last = 0, len(order) - 1
        while first <= last:
            idle, busy = order[first], order[last]
            gap = busy.usage * 100 - idle.usage * 100
            if gap < limits.low_threshold:
                _forget((self.low, self.high), (idle, busy))
            else:
                pairs.append((idle, busy))
                _count(self.low, (idle, busy))
                if gap < limits.high_threshold:
                    _forget((self.high,), (idle, busy))
                else:
                    _count(self.high, (idle, busy))
            first, last = first + 1, last - 1
        return [wish for idle, busy in pairs for wish in self._act(idle, busy, settings)]

    def _act(self, idle: PlainBroker, busy: PlainBroker, settings: Settings) -> list[Wish]:
        both = (idle.name, busy.name)
        low = max(self.low.get(name, 0) for name in both)
        high = max(self.high.get(name, 0) for name in both)
        if low < settings.avg.low_hits and high < settings.avg.high_hits:
            return []
        _forget((self.low, self.high), (idle, busy))
        return _fill(idle, busy, settings)


def _fill(idle: PlainBroker, busy: PlainBroker, settings: Settings) -> list[Wish]:
    limits = settings.unload
    left = (busy.rate - idle.rate) * limits.max_share
    by_rate = left > limits.min_rate
    if not by_rate:
        left = (busy.throughput - idle.throughput) * limits.max_share
        if not left > limits.min_throughput:
            return []
    wishes: list[Wish] = []
    sizes = [(b.rate if by_rate else b.throughput, b.name) for b in busy.bundles]
    for size, bundle in sorted(sizes, key=lambda entry: -entry[0]):
        if 0 < size <= left:
            wishes.append((bundle, busy.name, idle.name))
            left -= size
    return wishes


def _count(hits: dict[str, int], brokers: Iterable[PlainBroker]) -> None:
    for broker in brokers:
        hits[broker.name] = hits.get(broker.name, 0) + 1


def _forget(counts: Iterable[dict[str, int]], brokers: Iterable[PlainBroker]) -> None:
    for hits in counts:
        for broker in brokers:
            hits.pop(broker.name, None)
