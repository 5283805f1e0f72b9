"""How a new namespace spreads when clients look it up and no round is held.

The documents' figures are those of tests/golden/test_document_spread.py.
"""

from __future__ import annotations

from collections import Counter

import pytest
from redis import Redis

from tests.agent.looking_up import NAMESPACE, Scene
from trimtab.wire.lookup import AnswerKind

BROKERS = [f"broker-{i:02}:8080" for i in range(16)]


@pytest.mark.parametrize(
    ("bundles", "fewest_brokers", "most_bundles"),
    [
        pytest.param(16, 10, 3, id="002-06: up to 16 brokers in the document, 11 here"),
        pytest.param(64, 16, 6, id="002-07: four bundles each in the mean"),
    ],
)
def test_lookups_spread_one_namespace_over_brokers(
    client: Redis, cluster: str, bundles: int, fewest_brokers: int, most_bundles: int
) -> None:
    """Items 002-06 and 002-07: 1,000 topics of 16 or 64 bundles on 16 brokers.

    Two brokers are drawn for each bundle, so that some of 16 stay without one until a round.
    """
    scene = Scene(client, cluster)
    scene.obeying(*BROKERS)
    scene.hint(*BROKERS)
    scene.free(bundles)
    lookup = scene.lookup(BROKERS[0])
    topics = (f"persistent://{NAMESPACE}/topic-{i}" for i in range(1000))
    answers = [lookup.lookup(topic) for topic in topics]
    assert {answer.kind for answer in answers} == {AnswerKind.CONNECT}
    owners = {answer.bundle: answer.broker for answer in answers}
    each = Counter(owners.values())
    assert len(owners) == bundles
    assert len(each) >= fewest_brokers
    assert max(each.values()) <= most_bundles
