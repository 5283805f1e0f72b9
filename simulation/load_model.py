"""The load of a fleet as a function of ownership: the model that every simulation shares.

A bundle's messages cost CPU in proportion to their rate and a factor of the bundle. The costs are
scaled so that the initial owners spread from the profile's low to its high usage:

usage(broker) = base + sum of the costs of the bundles it owns

A bundle's topics are spread evenly over its range and are all alike. The children of a split, and
the whole of a merge, have the load of the topics they hold.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from simulation.profile import Profile
from trimtab.arrays import RATE_IN, RATE_OUT, THROUGHPUT_IN, THROUGHPUT_OUT, Floats, Ints
from trimtab.model import parse_bundle
from trimtab.policies import host_of
from trimtab.wire.reports.load_report import BundleStats, LocalBrokerData, Resource

RING: Final = 1 << 32
TOPICS: Final = 10
"""Topics of every bundle, with one producer and one consumer each."""

LOAD_MANAGER: Final = "org.apache.pulsar.broker.loadbalance.impl.ModularLoadManagerImpl"

HEAP_MIB: Final = 4096.0
DIRECT_MIB: Final = 8192.0
HEAP_SHARE: Final = 0.4
DIRECT_SHARE: Final = 0.1
"""Memory does not follow load here; direct memory stays below ``low``, so that CPU leads."""


Four = tuple[float, ...]
"""Messages/s in and out, bytes/s in and out."""


@dataclass(frozen=True, slots=True, eq=False)
class _Parts:
    """Owned bundles, and (k,) the parts of the model's rows that they consist of."""

    names: list[str]
    of: Ints
    """Place in ``names`` of the bundle that each part belongs to."""
    rows: Ints
    shares: Floats


@dataclass(frozen=True, slots=True, eq=False)
class LoadModel:
    """n brokers and m bundles by row; the same profile gives the same model."""

    profile: Profile
    brokers: tuple[str, ...]
    bundles: tuple[str, ...]
    traffic: Floats
    """(4, m) messages/s and bytes/s of each bundle, the rows of the view's ``traffic``."""
    cost: Floats
    """(m,) usage, a fraction, that owning the bundle adds to a broker."""
    initial: Ints
    """(m,) broker row that owns each bundle at the start."""
    row: dict[str, int]
    """Bundle name to row."""

    def usage(self, owned: Iterable[str]) -> float:
        """Expected usage, a fraction, of a broker that owns these bundles."""
        parts = self._parts(owned)
        return float(self.profile.base + self.cost[parts.rows] @ parts.shares)

    def topics(self, bundle: str) -> dict[int, Four]:
        """Positions of a bundle's topics, and the traffic of each, free of noise."""
        found: dict[int, Four] = {}
        for row, _ in self._made_of(bundle):
            each = tuple((self.traffic[:, row] / TOPICS).tolist())
            found |= dict.fromkeys(self._positions(row, bundle), each)
        return found

    def owned_at_start(self, broker: int) -> tuple[str, ...]:
        """Names of the bundles of a broker row before anything moved."""
        return tuple(self.bundles[row] for row in np.flatnonzero(self.initial == broker))

    def report(
        self, broker: str, owned: Iterable[str], now_ms: int, rng: np.random.Generator
    ) -> LocalBrokerData:
        """The broker's own report; the totals are the sums of its bundles' figures."""
        profile = self.profile
        parts = self._parts(owned)
        noise = np.maximum(rng.normal(1.0, profile.noise, parts.rows.size), 0.0) * parts.shares
        traffic = self.traffic[:, parts.rows] * noise
        totals = traffic.sum(axis=1)
        busy = profile.base + float(self.cost[parts.rows] @ noise)
        cpu = _cpu(busy * rng.normal(1.0, profile.noise), profile)
        bandwidth_in = _link(totals[THROUGHPUT_IN], profile)
        bandwidth_out = _link(totals[THROUGHPUT_OUT], profile)
        direct = Resource(usage=DIRECT_SHARE * DIRECT_MIB, limit=DIRECT_MIB)
        names = parts.names
        held = np.bincount(parts.of, parts.shares, len(names)) * TOPICS
        counts = np.rint(held).astype(int).tolist()
        topics = sum(counts)
        own = np.array([np.bincount(parts.of, figures, len(names)) for figures in traffic])
        return LocalBrokerData(
            cpu=cpu,
            memory=Resource(usage=HEAP_SHARE * HEAP_MIB, limit=HEAP_MIB),
            direct_memory=direct,
            bandwidth_in=bandwidth_in,
            bandwidth_out=bandwidth_out,
            msg_rate_in=float(totals[RATE_IN]),
            msg_rate_out=float(totals[RATE_OUT]),
            msg_throughput_in=float(totals[THROUGHPUT_IN]),
            msg_throughput_out=float(totals[THROUGHPUT_OUT]),
            last_stats=dict(zip(names, _stats(own, counts), strict=True)),
            bundles=names,
            num_topics=topics,
            num_bundles=len(names),
            num_consumers=topics,
            num_producers=topics,
            last_update=now_ms,
            web_service_url=f"http://{broker}",
            pulsar_service_url=f"pulsar://{host_of(broker)}:6650",
            broker_version_string="4.0.8",
            load_manager_class_name=LOAD_MANAGER,
            max_resource_usage=max(
                resource.usage / resource.limit
                for resource in (cpu, direct, bandwidth_in, bandwidth_out)
            ),
        )

    def _parts(self, owned: Iterable[str]) -> _Parts:
        # Sorted: a set's order differs between processes and would make the noise differ too.
        made_of = {bundle: self._made_of(bundle) for bundle in owned}
        names = sorted(made_of, key=lambda each: ([row for row, _ in made_of[each][:1]], each))
        parts = [(of, *part) for of, bundle in enumerate(names) for part in made_of[bundle]]
        return _Parts(
            names=names,
            of=np.array([of for of, _, _ in parts], dtype=np.int64),
            rows=np.array([row for _, row, _ in parts], dtype=np.int64),
            shares=np.array([share for _, _, share in parts], dtype=np.float64),
        )

    def _made_of(self, bundle: str) -> list[tuple[int, float]]:
        """The rows of the initial bundles that its topics come from, and its share of each.

        Empty for a bundle of a namespace that was created since: it has no topics.
        """
        row = self.row.get(bundle)
        if row is not None:
            return [(row, 1.0)]
        namespace, (low, high) = parse_bundle(bundle)
        found = []
        for whole, row in self.row.items():
            of, (first, last) = parse_bundle(whole)
            if of == namespace and first < high and low < last:
                found.append((row, len(self._positions(row, bundle)) / TOPICS))
        return found

    def _positions(self, row: int, bundle: str) -> list[int]:
        _, (first, last) = parse_bundle(self.bundles[row])
        _, (low, high) = parse_bundle(bundle)
        places = (first + (2 * i + 1) * (last - first) // (2 * TOPICS) for i in range(TOPICS))
        return [place for place in places if low <= place < high]


def load_model(profile: Profile) -> LoadModel:
    """The fleet of a profile; all randomness comes from its seed."""
    rng = np.random.default_rng(profile.seed)
    bundles = bundle_names(profile.bundles, profile.namespaces)
    rates = rng.lognormal(0.0, profile.rate_sigma, profile.bundles)
    rates *= profile.message_rate / rates.mean()
    cost = rates * rng.lognormal(0.0, profile.cost_sigma, profile.bundles)
    targets = _targets(profile, rng)
    cost *= targets.sum() / cost.sum()
    delivered = rates * profile.fan_out
    size = profile.message_bytes
    return LoadModel(
        profile=profile,
        brokers=broker_names(profile.brokers),
        bundles=bundles,
        traffic=np.stack((rates, delivered, rates * size, delivered * size)),
        cost=cost,
        initial=_deal(cost, targets, rng),
        row={bundle: row for row, bundle in enumerate(bundles)},
    )


def broker_names(count: int) -> tuple[str, ...]:
    """Ids as Pulsar's ``host:port``, in order of name."""
    width = len(str(count))
    return tuple(f"broker-{i:0{width}d}:8080" for i in range(1, count + 1))


def bundle_names(count: int, namespaces: int) -> tuple[str, ...]:
    """Names of ``count`` bundles whose ranges tile each of the namespaces."""
    width = len(str(namespaces - 1))
    each, more = divmod(count, namespaces)
    return tuple(
        f"demo/ns-{namespace:0{width}d}/{span}"
        for namespace in range(namespaces)
        for span in _tiles(each + (namespace < more))
    )


def _tiles(count: int) -> list[str]:
    bounds = [i * (RING // count) for i in range(count)] + [RING - 1]
    return [f"0x{low:08x}_0x{high:08x}" for low, high in pairwise(bounds)]


def _targets(profile: Profile, rng: np.random.Generator) -> Floats:
    """(n,) the load, beyond base, that each broker should start with, in random order."""
    spread = np.linspace(0.0, 1.0, profile.brokers) ** profile.skew
    return rng.permutation(profile.low + (profile.high - profile.low) * spread) - profile.base


def _deal(cost: Floats, targets: Floats, rng: np.random.Generator) -> Ints:
    """(m,) an owner for each bundle, so that each broker's costs sum up to its target.

    The costliest bundle goes first, each to the broker that lacks the largest share of its target:
    all brokers get a similar mix of bundles, and the small ones at the end fill the rest.
    """
    owner = np.empty(cost.size, dtype=np.int64)
    # The permutation breaks the ties at the start, when every broker lacks everything.
    order = rng.permutation(targets.size)
    wanted = np.maximum(targets[order], 1e-9)
    missing = wanted.copy()
    for bundle in np.argsort(-cost, kind="stable"):
        neediest = int(np.argmax(missing / wanted))
        missing[neediest] -= cost[bundle]
        owner[bundle] = order[neediest]
    return owner


def _cpu(busy: float, profile: Profile) -> Resource:
    # A saturated host reports its limit, never more, and never less than zero.
    limit = 100.0 * profile.cores
    return Resource(usage=min(max(busy, 0.0), 1.0) * limit, limit=limit)


def _link(bytes_per_second: float, profile: Profile) -> Resource:
    return Resource(usage=float(bytes_per_second) * 8 / 1000, limit=profile.nic_gbps * 1e6)


def _stats(traffic: Floats, topics: list[int]) -> list[BundleStats]:
    columns = zip(*traffic.tolist(), topics, strict=True)
    return [
        BundleStats(
            msg_rate_in=rate_in,
            msg_rate_out=rate_out,
            msg_throughput_in=bytes_in,
            msg_throughput_out=bytes_out,
            topics=count,
            consumer_count=count,
            producer_count=count,
        )
        for rate_in, rate_out, bytes_in, bytes_out, count in columns
    ]
