"""``resource`` and ``bundle_data``: percentages, usage and bundle averages."""

from __future__ import annotations

import numpy as np

from simulation.parity.cases import (
    DEFAULTS,
    FOUR,
    RESOURCES,
    Json,
    aggregate_stats,
    numbers,
    percent,
    settings_of,
)
from simulation.parity.load_data import Reports
from trimtab.arrays import MEMORY
from trimtab.intake import averages
from trimtab.load import unweighted_usage, usage


def resource(case: Json) -> Json:
    if "samples" in case:
        return averages_of(case)
    settings = settings_of(case, case)
    shares = percent(case["broker"])
    column = shares[:, np.newaxis]
    return {
        **_totals(case["broker"]),
        "percent": dict(zip(RESOURCES, map(_shortest, shares), strict=True)),
        "max": float(unweighted_usage(column)[0]),
        "maxWithWeight": float(usage(column, settings.weights)[0]),
    }


def _shortest(percentage: float) -> float:
    """Round as the recording prints a binary32 number."""
    return float(str(np.float32(percentage)))


def averages_of(case: Json) -> Json:
    """BrokerLoadData after each of the samples of one broker."""
    settings, answers = settings_of(case, case), []
    reports = Reports()
    for sample in case["samples"]:
        reports.update({"b:8080": sample}, settings)
        # The extensible manager divides the greatest percentage in binary64, the modular in 32.
        greatest = np.delete(percent(sample), MEMORY).max() / 100
        answers.append(
            {
                "maxResourceUsage": float(greatest),
                "weightedMaxEMA": reports.past.usage["b:8080"],
                "msgThroughputEMA": reports.past.throughput["b:8080"],
            }
        )
    return {"samples": answers}


def _totals(broker: Json) -> Json:
    if aggregate_stats(broker) is broker:
        return {}
    stats = broker["lastStats"].values()
    counts = {"numConsumers": "consumerCount", "numProducers": "producerCount"}
    totals = {name: sum(int(s.get(key, 0)) for s in stats) for name, key in counts.items()}
    whole = aggregate_stats(broker)
    kept = {key: whole[key] for key in (*FOUR, "numTopics")}
    return {"totals": {**totals, **kept, "numBundles": len(stats)}}


def bundle_data(case: Json) -> Json:
    start = np.array(numbers(case.get("defaults", DEFAULTS), FOUR))[:, np.newaxis]
    terms = {
        "shortTerm": (start, np.zeros(1, dtype=np.int64), case["numShort"]),
        "longTerm": (start, np.zeros(1, dtype=np.int64), case["numLong"]),
    }
    answers = []
    for stats in case["samples"]:
        new, mask = np.array(numbers(stats, FOUR))[:, np.newaxis], np.array([True])
        answered: Json = {"topics": stats.get("topics", 0)}
        for term, (values, n, most) in terms.items():
            values, n = averages.sample(values, n, new, mask, most)
            terms[term] = (values, n, most)
            named = dict(zip(FOUR, values[:, 0].tolist(), strict=True))
            answered[term] = {"maxSamples": most, "numSamples": int(n[0]), **named}
        answers.append(answered)
    return {"samples": answers}
