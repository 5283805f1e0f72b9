"""A thousand bundles looked up at once do not all go to the broker that was best a moment ago."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest
from redis import Redis

from tests.agent.looking_up import EACH, NAMESPACE, Scene
from trimtab.model import HashRange
from trimtab.ownership import Event
from trimtab.store.ring import bundle_at, equal_edges, position
from trimtab.wire.lookup import AnswerKind

BROKERS = [f"broker-{i}:8080" for i in range(10)]
ASKED = 4
"""Brokers that are asked, each without the others' knowledge."""


@pytest.mark.parametrize(
    ("bundles", "loads"),
    [
        pytest.param(1000, [0.5] * 10, id="all alike"),
        pytest.param(300, [0.3, 0.6] * 5, id="five idler than the others"),
    ],
)
def test_a_herd_is_spread_evenly_without_the_job(
    client: Redis, cluster: str, bundles: int, loads: Sequence[float]
) -> None:
    scene = Scene(client, cluster)
    scene.obeying(*BROKERS)
    before = dict(zip(BROKERS, loads, strict=True))
    scene.hint_loads(before)
    scene.free(bundles)
    lookups = [scene.lookup(f"asked-{i}:8080", seed=i) for i in range(ASKED)]
    shares = [topics(bundles)[i::ASKED] for i in range(ASKED)]

    with ThreadPoolExecutor(ASKED) as pool:
        found = pool.map(lambda i: list(map(lookups[i].lookup, shares[i])), range(ASKED))
        answers = [answer for share in found for answer in share]

    assert {answer.kind for answer in answers} == {AnswerKind.CONNECT}
    assert len({answer.bundle for answer in answers}) == bundles
    assert len(scene.accepted(Event.ASSIGN)) == bundles
    owners = Counter(answer.broker for answer in answers)
    after = [before[broker] + EACH * owners[broker] for broker in BROKERS]
    # At random, without a second choice, a thousand bundles lie some 30 apart.
    assert max(after) - min(after) <= 8.5 * EACH


def topics(bundles: int) -> list[str]:
    """One in each bundle."""
    edges = equal_edges(bundles)
    found: dict[HashRange, str] = {}
    number = 0
    while len(found) < bundles:
        topic = f"persistent://{NAMESPACE}/topic-{number}"
        found.setdefault(bundle_at(edges, position(topic)), topic)
        number += 1
    return list(found.values())
