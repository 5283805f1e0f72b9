"""``hash`` and ``bundle_of``: the positions of topics and the bundles that have them."""

from __future__ import annotations

from itertools import pairwise

from simulation.parity.cases import Json
from trimtab.model import HashRange
from trimtab.store.ring import bundle_at, equal_edges, position


def positions(case: Json) -> Json:
    return {"positions": {topic: f"0x{position(topic):08x}" for topic in case["topics"]}}


def bundle_of(case: Json) -> Json:
    given = case.get("boundaries")
    edges = [int(edge, 16) for edge in given] if given else equal_edges(case["numBundles"])
    return {
        # The recording leaves out longer lists.
        "bundles": [str(HashRange(*pair)) for pair in pairwise(edges) if len(edges) <= 65],
        "of": {
            topic: {
                "topic": topic,
                "bundle": f"{case['namespace']}/{bundle_at(edges, position(topic))}",
            }
            for topic in case["topics"]
        },
    }
