"""Decodes load reports from bytes straight into columns.

Every value is checked here, once: a decoded report is finite, within the limits of hardware (see
`trimtab.wire.reports.plausible`), and has well-formed bundle names.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from hashlib import blake2b
from itertools import chain
from typing import Final

import msgspec
import numpy as np

from trimtab.arrays import Bools, Floats, Ints
from trimtab.model import InvalidName, parse_bundle
from trimtab.wire.reports.load_report import (
    UNKNOWN,
    UNKNOWN_RESOURCE,
    BundleStats,
    LocalBrokerData,
    Resource,
)
from trimtab.wire.reports.plausible import (
    COUNT_FIELDS,
    LIMIT,
    MOST_TOPICS,
    RESOURCE_FIELDS,
    TRAFFIC_FIELDS,
    Doubtful,
    doubtful_counts,
    doubtful_resource,
    doubtful_traffic,
)
from trimtab.wire.reports.poison import Poison, PoisonReport

_LEAST: Final = 1e-9
"""The smallest limit: a percentage of a smaller one would be infinite in binary32."""

_LONGEST_WORD: Final = 256
"""The most characters of a version or a class, because they stay in state."""

_MOST_CHECKED: Final = 1 << 16
"""The most lists of bundles that are known again, one of each broker and a few of before."""

_CHECKED: Final = set[bytes]()
"""Hashes of lists of valid names."""

_DECODER: Final = msgspec.json.Decoder(LocalBrokerData)


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
    """True if the report has no ``lastStats``: the bundles known before stay valid."""
    names: str
    """The bundles, one per line: one text crosses to operator ① faster than a hundred."""
    shown: Bools
    """(m,) whether a bundle with statistics is also in ``bundles``."""
    stats: Floats
    """(4, m) messages/s in and out, bytes/s in and out."""
    counts: Ints
    """(4, m) topics, consumers, producers, cache size."""

    @property
    def bundles(self) -> tuple[str, ...]:
        return tuple(self.names.split("\n")) if self.names else ()


def decode(value: bytes) -> LoadReport:
    """Decode a report into columns; raises PoisonReport for anything unfit for a view."""
    data = _parse(value)
    _check_words(data)
    stats = data.last_stats if isinstance(data.last_stats, dict) else {}
    bundles = tuple(sorted(stats))
    names = "\n".join(bundles)
    _check_bundles(names, bundles)
    listed = frozenset(data.bundles)
    # Nearly always: a broker lists the bundles that it has statistics for.
    same = listed == stats.keys()
    if not same:
        _check_names(each for each in data.bundles if each not in stats)
    resources = _resources(data)
    columns = _columns(stats, bundles)
    totals = _totals(data)
    _check_traffic(totals[:4], columns, resources[1])
    _check_it_is_one(data)
    shown = np.ones(len(bundles), np.bool_) if same else _listed(bundles, listed)
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
        names=names,
        shown=shown,
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


def _check_words(data: LocalBrokerData) -> None:
    if max(len(data.broker_version_string), len(data.load_manager_class_name)) > _LONGEST_WORD:
        raise PoisonReport(Poison.RANGE, f"a version or class is above {_LONGEST_WORD} characters")


def _check_bundles(names: str, bundles: tuple[str, ...]) -> None:
    """Check a report's bundles, given also one per line."""
    # Known again by their hash, since a broker's bundles rarely change and checking 100 names costs
    # more than parsing the JSON around them. A line break in a name would make two lists one text.
    digest = blake2b(names.encode(errors="surrogatepass"), digest_size=16).digest()
    if digest in _CHECKED and names.count("\n") == len(bundles) - 1:
        return
    _check_names(bundles)
    if len(_CHECKED) == _MOST_CHECKED:
        _CHECKED.clear()
    _CHECKED.add(digest)


def _check_names(bundles: Iterable[str]) -> None:
    for bundle in bundles:
        try:
            parse_bundle(bundle)
        except InvalidName as error:
            raise PoisonReport(Poison.BUNDLE, str(error)) from error


def _check_it_is_one(data: LocalBrokerData) -> None:
    """Reject other JSON, and names in another case, which would read as an idle broker's report."""
    if all(each is UNKNOWN_RESOURCE for each in _given(data)):
        raise PoisonReport(Poison.SHAPE, f"none of {', '.join(RESOURCE_FIELDS)} is there")


def _given(data: LocalBrokerData) -> tuple[Resource, ...]:
    return data.cpu, data.memory, data.direct_memory, data.bandwidth_in, data.bandwidth_out


def _listed(bundles: tuple[str, ...], listed: Collection[str]) -> Bools:
    return np.fromiter((bundle in listed for bundle in bundles), np.bool_, len(bundles))


def _resources(data: LocalBrokerData) -> Floats:
    # Plain numbers: on columns of five NumPy's calls cost ten times the arithmetic.
    given = _given(data)
    for field, each in zip(RESOURCE_FIELDS, given, strict=True):
        if _is_unusable(each):
            raise _unusable(field, f"{each.usage:g} of a limit of {each.limit:g}")
    _believe(doubtful_resource(given))
    # An unknown usage has no percentage, whatever the limit: Pulsar's would be negative.
    limits = [UNKNOWN if each.usage < 0 else each.limit for each in given]
    return np.array([[each.usage for each in given], limits])


def _is_unusable(resource: Resource) -> bool:
    # A limit <= 0 means "unknown" in Pulsar (a NIC with speed -1 makes the sum negative), so only
    # its size is bounded; a negative usage other than -1 has no meaning.
    usage, limit = resource.usage, resource.limit
    beyond = abs(usage) > LIMIT or abs(limit) > LIMIT
    return beyond or (usage < 0 and usage != UNKNOWN) or 0 < limit < _LEAST


def _columns(stats: dict[str, BundleStats], bundles: tuple[str, ...]) -> Floats:
    """(8, m) the reported figures of each bundle."""
    cells = chain.from_iterable(map(msgspec.structs.astuple, map(stats.__getitem__, bundles)))
    try:
        columns = np.fromiter(cells, np.float64, 8 * len(bundles)).reshape(-1, 8).T.copy()
    except OverflowError:
        # JSON does not bound integers.
        columns = None
    if columns is None or (columns.size and not 0 <= columns.min() <= columns.max() <= LIMIT):
        raise _unusable(*_first_unusable(stats))
    return columns


def _first_unusable(stats: dict[str, BundleStats]) -> tuple[str, str]:
    names = (*TRAFFIC_FIELDS, *COUNT_FIELDS)
    for bundle, said in stats.items():
        for name, figure in zip(names, msgspec.structs.astuple(said), strict=True):
            if not 0 <= figure <= LIMIT:
                return name, f"{_shown(figure)}, of {bundle}"
    raise AssertionError("all figures can be computed with")


def _totals(data: LocalBrokerData) -> Floats:
    """(6,) the broker's own figures."""
    figures: dict[str, float] = {
        "msgRateIn": data.msg_rate_in,
        "msgRateOut": data.msg_rate_out,
        "msgThroughputIn": data.msg_throughput_in,
        "msgThroughputOut": data.msg_throughput_out,
        "numTopics": data.num_topics,
        "startTimestamp": data.start_timestamp,
    }
    for name, figure in figures.items():
        if not 0 <= figure <= LIMIT:
            raise _unusable(name, _shown(figure))
    if data.num_topics > MOST_TOPICS:
        _believe(Doubtful("numTopics", f"numTopics is {data.num_topics:g}"))
    return np.array(list(figures.values()), np.float64)


def _check_traffic(traffic: Floats, columns: Floats, limit: Floats) -> None:
    """Check the broker's own figures, and those of its bundles together."""
    _believe(doubtful_traffic(traffic, limit))
    together = columns.sum(axis=1)
    _believe(doubtful_traffic(together[:4], limit))
    _believe(doubtful_counts(together[4:]))


def _believe(doubtful: Doubtful | None) -> None:
    if doubtful is not None:
        raise PoisonReport(Poison.IMPLAUSIBLE, doubtful.detail, doubtful.field)


def _unusable(field: str, found: str) -> PoisonReport:
    return PoisonReport(Poison.RANGE, f"{field} is {found}", field)


def _shown(figure: float) -> str:
    # A JSON integer may be too long to convert to a float or to print.
    return f"{figure:g}" if abs(figure) <= 1e300 else "beyond 1e300"
