"""TransferShedder once more, as plain as can be: loops over dicts, straight from its description.

Slow on purpose; shares nothing with trimtab's but the settings. It knows no policies.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.support.plain import Wish
from trimtab.settings import Settings
from trimtab.view import View, is_monitoring


@dataclass
class Bundle:
    name: str
    size: float
    order: tuple[float, ...]
    movable: bool


@dataclass
class Broker:
    name: str
    load: float
    average: float
    traffic: float
    topics: int
    available: bool
    young: bool
    resting: bool
    bundles: list[Bundle] = field(default_factory=list)

    def top(self, settings: Settings) -> list[Bundle]:
        """The largest, smallest first."""
        largest = sorted(self.bundles, key=lambda bundle: bundle.order, reverse=True)
        return largest[: settings.transfer.top_bundles][::-1]


def brokers_of(view: View, settings: Settings) -> list[Broker]:
    limits, brokers = settings.transfer, []
    for row, name in enumerate(view.brokers.names):
        reported = int(view.brokers.reported_ms[row])
        relieved = int(view.brokers.relieved_ms[row])
        _, _, into, out = map(float, view.brokers.traffic[:, row])
        brokers.append(
            Broker(
                name=name,
                load=float(view.brokers.averages[0, row]),
                average=float(view.brokers.averages[1, row]),
                traffic=into + out,
                topics=int(view.brokers.topics[row]),
                available=bool(view.brokers.available[row]),
                young=view.now_ms - reported <= limits.report_life * 1000,
                resting=bool(relieved) and reported - relieved < limits.delay * 1000,
            )
        )
    for row, name in enumerate(view.bundles.names):
        rate_in, rate_out, into, out = map(float, view.bundles.stats[:, row])
        if into + out == 0 or is_monitoring(name) or name.startswith("pulsar/system/"):
            continue
        served, cache = int(view.bundles.counts[:3, row].sum()), int(view.bundles.counts[3, row])
        order = (
            math.floor(into / 100_000 + 0.5),
            math.floor(out / 100_000 + 0.5),
            math.floor((rate_in + rate_out) / 100 + 0.5),
            served // 500,
            cache // 100_000,
        )
        bundle = Bundle(name, into + out, order, bool(view.bundles.movable[row]))
        brokers[view.bundles.owner[row]].bundles.append(bundle)
    return brokers


class PlainTransfer:
    """TransferShedder; ``hits`` is its history."""

    def __init__(self) -> None:
        self.hits = 0

    def shed(self, view: View, settings: Settings) -> list[Wish]:
        brokers = brokers_of(view, settings)
        young = [broker for broker in brokers if broker.young]
        if not young or any(broker.resting for broker in young):
            return []
        self._settings, self._count = settings, len(young)
        self._squares = total = 0.0
        for broker in young:
            total += broker.load
            self._squares += broker.load * broker.load
        self._mean = total / self._count
        variance = self._squares / self._count - self._mean * self._mean
        self._deviation = math.sqrt(variance) if variance >= 0 else math.nan
        order = sorted(brokers, key=lambda broker: broker.load)
        self.hits = self.hits + 1 if self._apart(order[0], order[-1]) else 0
        if self.hits <= settings.transfer.hits:
            return []
        wishes = self._pairs(order)
        self.hits = 0 if wishes else self.hits
        return wishes

    def _apart(self, idle: Broker, busy: Broker) -> bool:
        target = self._settings.transfer.target_deviation
        slack = min(0.5, target / 2)
        limit = self._settings.round.overloaded_threshold
        return (
            self._deviation > target
            or idle.load < self._mean * slack
            or idle.average < busy.average * slack
            or (busy.load > limit and busy.load > self._mean + target)
        )

    def _pairs(self, order: list[Broker]) -> list[Wish]:
        wishes: list[Wish] = []
        low, high, done = 0, len(order) - 1, 0
        while done < self._settings.transfer.max_brokers and low < high:
            idle, busy = order[low], order[high]
            if not self._apart(idle, busy):
                break
            high -= 1
            taken, kept, found = self._relieve(idle, busy)
            wishes += found
            if taken > 0:
                self._expect(idle, busy, kept)
                low, done = low + 1, done + 1
        return wishes

    def _relieve(self, idle: Broker, busy: Broker) -> tuple[float, float, list[Wish]]:
        limits, wishes = self._settings.transfer, list[Wish]()
        fair = busy.traffic * ((busy.load - idle.load) / 2)
        fair = fair / busy.load if busy.load else (math.inf if fair else math.nan)
        back = iter(idle.top(self._settings) if limits.directed else [])
        taken = returned = 0.0
        listed = busy.top(self._settings)
        left = len(listed)
        for bundle in listed:
            if not bundle.movable or not self._receives(idle):
                continue
            if left <= 1:
                break
            swapped = list[Bundle]()
            if taken - returned + bundle.size > fair:
                swapped = self._swap(back, (idle, busy), taken - returned, bundle.size)
                if not swapped:
                    break
            wishes.append((bundle.name, busy.name, idle.name if limits.directed else None))
            wishes += [(other.name, idle.name, busy.name) for other in swapped]
            returned += sum(other.size for other in swapped) if limits.credit_swaps else 0.0
            taken += bundle.size
            left -= 1
        return taken, taken - returned, wishes

    def _swap(
        self, back: Iterator[Bundle], pair: tuple[Broker, Broker], net: float, size: float
    ) -> list[Bundle]:
        idle, busy = pair
        found, on_busy, on_idle = list[Bundle](), busy.traffic - net - size, idle.traffic
        on_idle += net + size
        for bundle in back:
            if not bundle.movable or not self._receives(busy):
                continue
            if on_busy + bundle.size < busy.traffic and on_idle - bundle.size < busy.traffic:
                found.append(bundle)
                on_busy += bundle.size
                on_idle -= bundle.size
                if on_idle <= on_busy and on_busy < busy.traffic * 0.75:
                    return found
        return []

    def _receives(self, broker: Broker) -> bool:
        return broker.available and broker.topics < self._settings.placement.max_topics

    def _expect(self, idle: Broker, busy: Broker, moved: float) -> None:
        change = moved * busy.load / busy.traffic if busy.traffic else math.inf
        lighter, heavier = max(0.0, busy.load - change), idle.load + change
        self._squares -= busy.load * busy.load + idle.load * idle.load
        self._squares += lighter * lighter + heavier * heavier
        self._deviation = math.sqrt(abs(self._squares / self._count - self._mean * self._mean))
