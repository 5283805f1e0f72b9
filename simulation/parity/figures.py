"""``resource`` and ``bundle_data``: percentages, usage and bundle averages."""

from __future__ import annotations

import numpy as np

from simulation.parity.cases import (
    DEFAULTS,
    FOUR,
    RESOURCES,
    Json,
    aggregated,
    numbers,
    percent,
    settings_of,
)
from trimtab import averages
from trimtab.load import unweighted_usage, usage


def resource(case: Json) -> Json:
    settings = settings_of(case, case)
    shares = percent(case["broker"])
    column = shares[:, np.newaxis]
    return {
        **_totals(case["broker"]),
        "percent": dict(zip(RESOURCES, shares.tolist(), strict=True)),
        "max": float(unweighted_usage(column)[0]),
        "maxWithWeight": float(usage(column, settings.weights)[0]),
    }


def _totals(broker: Json) -> Json:
    if aggregated(broker) is broker:
        return {}
    stats = broker["lastStats"].values()
    counts = {"numConsumers": "consumerCount", "numProducers": "producerCount"}
    totals = {name: sum(int(s.get(key, 0)) for s in stats) for name, key in counts.items()}
    whole = aggregated(broker)
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
