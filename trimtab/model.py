"""Ids, epochs and hash ranges: the types that every part shares."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, NamedTuple, NewType

BrokerId = NewType("BrokerId", str)
"""``host:port`` of a broker's web service, Pulsar's ``brokerId``."""

ClusterId = NewType("ClusterId", str)

FULL_RANGE_END = 0xFFFFFFFF

LONGEST_NAME: Final = 2048
"""Bytes of a bundle's name: brokers may claim any, and Kafka must accept messages about it."""

# ASCII: what is a space must be one to the scripts as well.
_BUNDLE = re.compile(
    r"([^/\x00-\x20\x7f]+/[^\x00-\x20\x7f]+)/0x([0-9a-f]{8})_0x([0-9a-f]{8})", re.ASCII
)
"""Neither blanks nor control characters: names are shown on terminals."""

SUBJECT_PATTERN = "([!-.0-z|~]{1,128})/([!-.0-z|~]{1,256})"
"""``cluster/broker`` in printable ASCII; the JVM runs the same pattern.

Braces are refused: they enclose the cluster in each Redis key's name, so a cluster with a brace in
its name could read and write the keys of another.
"""

_SUBJECT = re.compile(SUBJECT_PATTERN)
_MONITORING = re.compile(r"(?:pulsar|sla-monitor)/(?:[^/]+/)?[^/:]+:\d+")


class Epoch(NamedTuple):
    """The age of an ownership record: two integers, never packed (a Lua number is a double)."""

    generation: int
    counter: int


NO_EPOCH = Epoch(0, 0)
"""The epoch of a bundle that has no record yet."""


class HashRange(NamedTuple):
    """The part of the 32-bit ring that a bundle covers: ``[low, high)``; the last includes high."""

    low: int
    high: int

    def __str__(self) -> str:
        return f"0x{self.low:08x}_0x{self.high:08x}"


class InvalidName(ValueError):
    """A malformed broker, cluster or bundle name."""


def parse_bundle(name: str) -> tuple[str, HashRange]:
    """Split a bundle's name into its namespace and hash range; raises InvalidName."""
    if len(name) > LONGEST_NAME // 4 and len(name.encode(errors="replace")) > LONGEST_NAME:
        raise InvalidName(f"{name[:100]}… has more than {LONGEST_NAME} bytes")
    match = _BUNDLE.fullmatch(name)
    if match is None:
        raise InvalidName(f"{name!r} is not namespace/0xLLLLLLLL_0xHHHHHHHH")
    low, high = int(match[2], 16), int(match[3], 16)
    if low >= high:
        raise InvalidName(f"{name!r} is an empty range")
    return match[1], HashRange(low, high)


def is_bundle(name: str) -> bool:
    """Whether a name is a valid bundle name: a namespace and a range."""
    try:
        parse_bundle(name)
    except InvalidName:
        return False
    return True


def merge_names(lower: str, upper: str) -> str:
    """The name of two neighbours merged; raises InvalidName if they are not neighbours."""
    namespace, (low, between) = parse_bundle(lower)
    of, (above, high) = parse_bundle(upper)
    if (of, above) != (namespace, between):
        raise InvalidName(f"{upper!r} is not the neighbour above {lower!r}")
    return f"{namespace}/{HashRange(low, high)}"


def within(bundle: str, part: str) -> bool:
    """Whether ``part`` lies within a bundle, or is the bundle itself."""
    namespace, (low, high) = parse_bundle(bundle)
    of, (first, last) = parse_bundle(part)
    return of == namespace and low <= first and last <= high


class BeingSplit:
    """The bundles that are being split, and their children."""

    def __init__(self, splitting: Iterable[str]) -> None:
        self._ends = {end for bundle in splitting for end in _ends(bundle)}

    def involves(self, bundle: str) -> bool:
        """Whether a bundle, or the bundle it came from, is being split."""
        return bool(self._ends) and not self._ends.isdisjoint(_ends(bundle))


def _ends(bundle: str) -> set[tuple[str, str, int]]:
    """Both ends of a bundle: a child shares one of them with the bundle it came from."""
    namespace, (low, high) = parse_bundle(bundle)
    return {(namespace, "from", low), (namespace, "to", high)}


def namespace_of(bundle: str) -> str:
    """The namespace of a bundle whose name was checked before."""
    return bundle.rsplit("/", 1)[0]


def is_monitoring_namespace(namespace: str) -> bool:
    """Whether a namespace is a broker's heartbeat or SLA namespace."""
    return bool(_MONITORING.fullmatch(namespace))


def parse_subject(key: str) -> tuple[ClusterId, BrokerId]:
    """Split a report's Kafka key ``cluster/broker``; raises InvalidName."""
    match = _SUBJECT.fullmatch(key)
    if match is None:
        raise InvalidName(f"{key[:80]!r} is not cluster/broker")
    return ClusterId(match[1]), BrokerId(match[2])
