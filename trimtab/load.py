"""Compute percentages and one usage number from the resources of brokers, as columns.

Percentages are binary32, as in Pulsar's ResourceUsage; all later steps are binary64.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from trimtab.arrays import BANDWIDTH_IN, BANDWIDTH_OUT, CPU, DIRECT_MEMORY, Bools, Floats
from trimtab.settings import WeightSettings

COUNTED: Final = [CPU, DIRECT_MEMORY, BANDWIDTH_IN, BANDWIDTH_OUT]
"""Pulsar's modular manager leaves heap memory out of usage, whatever its weight."""
_BUSY: Final = 0.5
"""The part of usage from which a resource may be a broker's busiest. Lower: a link without a speed
takes its broker out of all plans; higher: a broker whose busiest resource is unknown seems idle."""


def percentages(used: Floats, limit: Floats) -> Floats:
    """Pulsar's ``percentUsage`` of any shape; 0 where the limit is unknown, not capped at 100."""
    with np.errstate(all="ignore"):
        ratio = used.astype(np.float32) / limit.astype(np.float32)
        percent = ratio * np.float32(100)
    return np.where(limit > 0, percent, np.float32(0)).astype(np.float64)


def weight_of(weights: WeightSettings) -> Floats:
    """(4,) how much each resource of `COUNTED` counts."""
    return np.array(
        [weights.cpu, weights.direct_memory, weights.bandwidth_in, weights.bandwidth_out]
    )


def usage(resources: Floats, weights: WeightSettings) -> Floats:
    """(n,) Pulsar's ``getMaxResourceUsageWithWeight`` of (5, n) percentages, as a fraction."""
    return _greatest(resources[COUNTED], weight_of(weights))


def find_measured(percent: Floats, limits: Floats, weights: WeightSettings) -> Bools:
    """(n,) whether usage is known: brokers without the limit of a resource, of (5, n) ``limits``,
    count as if they did not use it, but it may be their busiest one.

    It may if it is busy on the brokers that have its limit; ``percent`` (5, n) are averages.
    """
    has = limits[COUNTED] > 0
    measured = np.ones(has.shape[1], np.bool_)
    if has.all():
        return measured
    shares = percent[COUNTED] / 100 * weight_of(weights)[:, np.newaxis]
    for resource, there in enumerate(has):
        if there.any() and not there.all():
            busy, busiest = shares[resource, there].mean(), shares[:, there].max(axis=0).mean()
            if busy > 0 and busy >= _BUSY * busiest:
                measured &= there
    return measured


def usage_with_memory(resources: Floats, weights: WeightSettings) -> Floats:
    """(n,) `usage` with heap memory: BrokerLoadData's usage, from the extensible manager."""
    weight = [weights.cpu, weights.memory, weights.direct_memory]
    weight += [weights.bandwidth_in, weights.bandwidth_out]
    return _greatest(resources, np.array(weight))


def _greatest(percent: Floats, weight: Floats) -> Floats:
    with np.errstate(invalid="ignore"):
        weighted = percent * weight[:, np.newaxis]
    # In Pulsar a NaN (an infinite percentage with weight 0) never wins a comparison.
    highest: Floats = np.fmax.reduce(weighted, axis=0, initial=-np.inf)
    return highest / 100


def unweighted_usage(resources: Floats) -> NDArray[np.float32]:
    """(n,) Pulsar's ``getMaxResourceUsage``: binary32 to the end, so 7 of 10 is 0.69999999."""
    percent = resources[COUNTED].astype(np.float32)
    highest: NDArray[np.float32] = percent.max(axis=0) / np.float32(100)
    return highest
