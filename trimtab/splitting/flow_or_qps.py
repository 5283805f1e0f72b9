"""Split so that no child has too much traffic (Pulsar FlowOrQpsEquallyDivide...).

topics without traffic are left out; of topics at one position only the last one's traffic counts
nothing unless messages or bytes pass their limit by difference, and there are two positions
from the lowest topic on, add up; where the next one would pass max_rate or max_throughput:
  boundary = just above half way from the topic before to it; restart the sums with it
"""

from __future__ import annotations

import numpy as np

from trimtab.arrays import RATE_IN, RATE_OUT, THROUGHPUT_IN, THROUGHPUT_OUT
from trimtab.settings import SplitSettings
from trimtab.splitting.request import SplitRequest


def divide(request: SplitRequest, settings: SplitSettings) -> list[int]:
    """As many boundaries as the traffic requires; close topics may give one boundary twice."""
    if len(request.positions) <= 1:
        return []
    rate = request.traffic[RATE_IN] + request.traffic[RATE_OUT]
    throughput = request.traffic[THROUGHPUT_IN] + request.traffic[THROUGHPUT_OUT]
    busy = (rate > 0) | (throughput > 0)
    where, rate, throughput = request.positions[busy], rate[busy], throughput[busy]
    # Pulsar keeps traffic by position: the last topic overwrites all at the same position.
    known = {at: row for row, at in enumerate(where.tolist())}
    if len(known) < 2 or not _heavy(rate, throughput, settings):
        return []
    ordered = np.sort(where).tolist()
    rows = [known[at] for at in ordered]
    return _cuts(ordered, rate[rows].tolist(), throughput[rows].tolist(), settings)


def _heavy(rate: np.ndarray, throughput: np.ndarray, settings: SplitSettings) -> bool:
    least = 1 + settings.difference
    # cumsum adds one by one as Pulsar does; sum would add pairwise and differ in the last bit.
    messages, size = float(np.cumsum(rate)[-1]), float(np.cumsum(throughput)[-1])
    return messages >= settings.max_rate * least or size >= settings.max_throughput * least


def _cuts(
    ordered: list[int], rate: list[float], throughput: list[float], settings: SplitSettings
) -> list[int]:
    cuts = []
    messages, size = rate[0], throughput[0]
    for row in range(1, len(ordered)):
        messages, size = messages + rate[row], size + throughput[row]
        if messages > settings.max_rate or size > settings.max_throughput:
            before, after = ordered[row - 1], ordered[row]
            cuts.append(before + (after - before) // 2 + 1)
            messages, size = rate[row], throughput[row]
    return cuts
