"""Pulsar's load report (`LocalBrokerData`), decoded from bytes straight into columns.

The JSON is what ``GET /admin/v2/broker-stats/load-report`` serves. Unknown members are ignored.
Every value is checked here once: inside, a report is finite, in range and has possible bundles.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from itertools import chain
from typing import Final

import msgspec
import numpy as np

from trimtab.model import InvalidName, parse_bundle
from trimtab.view import Bools, Floats, Ints

LIMIT: Final = 1e15
"""No figure of a broker is larger; sums and binary32 ratios stay finite below."""

_LEAST: Final = 1e-9
"""No resource has a smaller limit; a percentage of a smaller one would be infinite in binary32."""

UNKNOWN: Final = -1.0
"""What Pulsar reports for a resource it cannot read."""


class Poison(StrEnum):
    """Why a report is rejected; the label of the dead-letter counter."""

    KEY = "bad-key"
    HEADERS = "bad-headers"
    SIZE = "too-large"
    JSON = "bad-json"
    SHAPE = "wrong-type"
    RANGE = "out-of-range"
    BUNDLE = "bad-bundle-name"


class PoisonReport(ValueError):
    """A report that must not touch any state."""

    def __init__(self, poison: Poison, detail: str) -> None:
        super().__init__(f"{poison.value}: {detail}")
        self.poison = poison


class Resource(msgspec.Struct, gc=False):
    """``usage`` and ``limit`` in the resource's own unit; absent means unknown."""

    usage: float = UNKNOWN
    limit: float = UNKNOWN


class BundleStats(msgspec.Struct, gc=False, rename="camel"):
    """Pulsar's ``NamespaceBundleStats``: messages/s, bytes/s, counts."""

    msg_rate_in: float = 0.0
    msg_rate_out: float = 0.0
    msg_throughput_in: float = 0.0
    msg_throughput_out: float = 0.0
    topics: int = 0
    consumer_count: int = 0
    producer_count: int = 0
    cache_size: int = 0


class LocalBrokerData(msgspec.Struct, rename="camel"):
    """The report as Pulsar spells it; only this module and the agent see it."""

    cpu: Resource = msgspec.field(default_factory=Resource)
    memory: Resource = msgspec.field(default_factory=Resource)
    direct_memory: Resource = msgspec.field(default_factory=Resource)
    bandwidth_in: Resource = msgspec.field(default_factory=Resource)
    bandwidth_out: Resource = msgspec.field(default_factory=Resource)
    msg_rate_in: float = 0.0
    msg_rate_out: float = 0.0
    msg_throughput_in: float = 0.0
    msg_throughput_out: float = 0.0
    last_stats: dict[str, BundleStats] | msgspec.UnsetType | None = msgspec.UNSET
    """Unset (or null) makes the report a heartbeat."""
    bundles: list[str] = []
    num_topics: int = 0
    num_bundles: int = 0
    num_consumers: int = 0
    num_producers: int = 0
    last_update: int = 0
    start_timestamp: int = 0
    web_service_url: str = ""
    pulsar_service_url: str = ""
    persistent_topics_enabled: bool = True
    non_persistent_topics_enabled: bool = True
    broker_version_string: str = ""
    load_manager_class_name: str = ""
    max_resource_usage: float = 0.0
    load_report_type: str = "LocalBrokerData"


@dataclass(frozen=True, slots=True, eq=False)
class LoadReport:
    """One checked report as columns; ``m`` bundles sorted by name."""

    resources: Floats
    """(2, 5) usage and limit; rows of the view's ``resources``."""
    traffic: Floats
    """(4,) instantaneous, as reported."""
    topics: int
    start_ms: int
    version: str
    load_manager: str
    persistent: bool
    non_persistent: bool
    listed: int
    """Size of ``bundles``: the bundles with at least one loaded topic."""
    heartbeat: bool
    """True when the report carries no ``lastStats``: the bundles known before stand."""
    bundles: tuple[str, ...]
    shown: Bools
    """(m,) whether a bundle with statistics is also in ``bundles``."""
    stats: Floats
    """(4, m) messages/s in and out, bytes/s in and out."""
    counts: Ints
    """(4, m) topics, consumers, producers, cache size."""


_DECODER: Final = msgspec.json.Decoder(LocalBrokerData)
_ENCODER: Final = msgspec.json.Encoder()


def encode(report: LocalBrokerData) -> bytes:
    """The JSON a Pulsar broker would serve."""
    return _ENCODER.encode(report)


def decode(value: bytes) -> LoadReport:
    """Columns of a report; raises PoisonReport for anything a view must not see."""
    data = _parse(value)
    stats = data.last_stats if isinstance(data.last_stats, dict) else {}
    bundles = tuple(sorted(stats))
    _check_bundles(bundles)
    cells = chain.from_iterable(map(msgspec.structs.astuple, map(stats.__getitem__, bundles)))
    figures = (
        data.msg_rate_in,
        data.msg_rate_out,
        data.msg_throughput_in,
        data.msg_throughput_out,
        data.num_topics,
        data.start_timestamp,
    )
    resources = _resources(data)
    try:
        columns = np.fromiter(cells, np.float64, 8 * len(bundles)).reshape(-1, 8).T.copy()
        totals = np.array(figures, np.float64)
    except OverflowError as error:
        # JSON knows no bound of integers.
        raise PoisonReport(Poison.RANGE, str(error)) from error
    for values in (columns, totals):
        if values.size and not (values.min() >= 0 and values.max() <= LIMIT):
            raise PoisonReport(Poison.RANGE, "a rate or count is negative or beyond 1e15")
    listed = frozenset(data.bundles)
    return LoadReport(
        resources=resources,
        traffic=totals[:4],
        topics=data.num_topics,
        start_ms=data.start_timestamp,
        version=data.broker_version_string,
        load_manager=data.load_manager_class_name,
        persistent=data.persistent_topics_enabled,
        non_persistent=data.non_persistent_topics_enabled,
        listed=len(listed),
        heartbeat=not isinstance(data.last_stats, dict),
        bundles=bundles,
        shown=np.fromiter((b in listed for b in bundles), np.bool_, len(bundles)),
        stats=columns[:4],
        counts=columns[4:].astype(np.int64),
    )


def _parse(value: bytes) -> LocalBrokerData:
    try:
        return _DECODER.decode(value)
    except msgspec.ValidationError as error:
        raise PoisonReport(Poison.SHAPE, str(error)) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise PoisonReport(Poison.JSON, str(error)) from error
    except RecursionError as error:
        raise PoisonReport(Poison.JSON, "nested too deeply") from error


@lru_cache(maxsize=2048)
def _check_bundles(bundles: tuple[str, ...]) -> None:
    # Cached because a broker's bundles rarely change and checking 100 names costs more than parsing
    # the JSON around them; a failure is never cached.
    for bundle in bundles:
        try:
            parse_bundle(bundle)
        except InvalidName as error:
            raise PoisonReport(Poison.BUNDLE, str(error)) from error


def _resources(data: LocalBrokerData) -> Floats:
    given = (data.cpu, data.memory, data.direct_memory, data.bandwidth_in, data.bandwidth_out)
    columns = np.array([[r.usage for r in given], [r.limit for r in given]])
    usage, limit = columns
    # A limit <= 0 means "unknown" in Pulsar (a NIC of speed -1 makes the sum negative), so only its
    # size is bounded; a negative usage other than -1 is nobody's meaning.
    if np.abs(columns).max() > LIMIT or ((usage < 0) & (usage != UNKNOWN)).any():
        raise PoisonReport(Poison.RANGE, "a resource is negative or beyond 1e15")
    if ((limit > 0) & (limit < _LEAST)).any():
        raise PoisonReport(Poison.RANGE, f"the limit of a resource is below {_LEAST:g}")
    return columns
