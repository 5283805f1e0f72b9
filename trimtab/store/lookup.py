"""Finds the bundle that holds a topic, and what a lookup does about its record.

SERVED     answer the owner
ON_ITS_WAY wait for the owner to serve, if it is alive; otherwise as ORPHANED
ORPHANED   give it to the better of two brokers, drawn from the less loaded ones
GONE       find the bundle that holds the topic now
HELD_BACK  fail: an operator must act

Two drawn at random rather than the best: brokers decide independently, on figures up to one round
old, and would all choose the same one (Mitzenmacher, "The Power of Two Choices", 2001).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from types import MappingProxyType
from typing import Final

import numpy as np

from trimtab.model import InvalidName, is_monitoring_namespace, parse_bundle
from trimtab.ownership import State
from trimtab.tiling import flaws
from trimtab.wire.hints import Hints
from trimtab.wire.ownership import Candidate

_DOMAINS: Final = frozenset({"persistent", "non-persistent"})


class LookupAction(StrEnum):
    """What a lookup does about a record."""

    SERVED = "served"
    ON_ITS_WAY = "on-its-way"
    ORPHANED = "orphaned"
    GONE = "gone"
    HELD_BACK = "held-back"


STEPS: Final[Mapping[State, LookupAction]] = MappingProxyType(
    {
        State.FREE: LookupAction.ORPHANED,
        State.ASSIGNING: LookupAction.ON_ITS_WAY,
        State.OWNED: LookupAction.SERVED,
        State.RELEASING: LookupAction.SERVED,
        State.SPLITTING: LookupAction.SERVED,
        State.MERGING: LookupAction.SERVED,
        State.DELETED: LookupAction.GONE,
        State.QUARANTINED: LookupAction.HELD_BACK,
    }
)


class NotTiling(ValueError):
    """A namespace's bundles leave a hole or overlap; the message names the first flaw."""


def parse_topic(topic: str) -> tuple[str, str]:
    """A topic's full name and its namespace (Pulsar TopicName); raises InvalidName.

    ``topic`` and ``tenant/namespace/topic`` are short for persistent topics.
    """
    domain, whole, rest = topic.partition("://")
    if not whole:
        return parse_topic(_completed(topic))
    parts = rest.split("/", 3)
    # With four parts the second is a cluster (old names), and the last may contain slashes.
    if domain not in _DOMAINS or len(parts) < 3 or not all(parts):
        raise InvalidName(f"{topic[:200]!r} is not persistent://tenant/namespace/topic")
    return topic, "/".join(parts[:-1])


def _completed(short: str) -> str:
    match short.count("/"):
        case 0 if short:
            return f"persistent://public/default/{short}"
        case 2:
            return f"persistent://{short}"
        case _:
            raise InvalidName(f"{short[:200]!r} is not topic or tenant/namespace/topic")


def edges_of(bundles: Sequence[str]) -> list[int]:
    """The edges of a namespace with these bundles, for `ring.bundle_at`; raises NotTiling.

    ``bundles`` are ascending and not empty.
    """
    found = flaws(bundles)
    if found:
        raise NotTiling(f"{found[0]}; an operator must repair its records")
    ranges = [parse_bundle(bundle)[1] for bundle in bundles]
    return [*(low for low, _ in ranges), ranges[-1].high]


def candidates_for(namespace: str, hints: Hints) -> tuple[Candidate, ...]:
    """Where a namespace's bundle may go; a monitoring one only to the broker it is named after.

    Pulsar: ExtensibleLoadManagerImpl.getHeartbeatOrSLAMonitorBrokerId.
    """
    if is_monitoring_namespace(namespace):
        return (Candidate(namespace.rpartition("/")[2], 0.0),)
    return hints.candidates_for(namespace)


def draw(
    candidates: Sequence[Candidate], placed: int, each: float, rng: np.random.Generator
) -> tuple[Candidate, ...]:
    """Two of the less loaded candidates, or one if there is only one.

    They are the less loaded half, and those below the mean of all with the ``placed`` bundles since
    then counted at ``each``: a herd fills the idle brokers first and then overflows to the others
    (Pulsar's LeastResourceUsageWithWeight draws below a mean, too). Which brokers got those bundles
    does not count here, or simultaneous claims would all go to the least loaded one. The script
    counts them.
    """
    if len(candidates) < 2:
        return tuple(candidates)
    loads = sorted(load for _, load in candidates)
    mean = (sum(loads) + placed * each) / len(loads)
    highest = max(mean, loads[max(1, (len(loads) - 1) // 2)])
    good = [candidate for candidate in candidates if candidate.load <= highest]
    first, second = rng.choice(len(good), 2, replace=False)
    return good[first], good[second]
