"""Bundles that several brokers' lookups place between two rounds stay spread as a round's would."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle, pairwise

import pytest
from redis import Redis

from sinks.redis.cluster_gate import ClusterGate
from sinks.redis.hints import PlacementHints
from sinks.redis.ownership_store import OwnershipStore
from tests.agent.looking_up import NAMESPACE, STANDING, TOPIC, Scene
from trimtab.model import HashRange, namespace_of
from trimtab.ownership import State
from trimtab.store.ring import equal_edges, position, row_at
from trimtab.wire.hints import Hints, Pool
from trimtab.wire.keys import tallies_key
from trimtab.wire.lookup import AnswerKind
from trimtab.wire.ownership import Candidate, Record

BROKERS = tuple(f"{letter}:8080" for letter in "abcdef")
# One broker is idle: by load alone it would get most.
LOADS = dict(zip(BROKERS, (0.0, 0.5, 0.6, 0.6, 0.7, 0.7), strict=True))


@pytest.fixture
def scene(client: Redis, cluster: str) -> Scene:
    found = Scene(client, cluster)
    found.obeying(*BROKERS)
    return found


def candidates(brokers: Iterable[str]) -> tuple[Candidate, ...]:
    return tuple(Candidate(broker, LOADS[broker]) for broker in brokers)


def publish(scene: Scene, hints: Hints) -> None:
    ClusterGate(scene.client).set_hints(scene.cluster, 1, hints)


def free(scene: Scene, namespace: str, bundles: int) -> list[str]:
    """Topics, one in each of that many bundles without an owner."""
    edges = equal_edges(bundles)
    for pair in pairwise(edges):
        scene.put(Record(state=State.FREE, epoch=STANDING), f"{namespace}/{HashRange(*pair)}")
    topics: dict[int, str] = {}
    number = 0
    while len(topics) < bundles:
        topic = f"persistent://{namespace}/topic-{number}"
        topics.setdefault(row_at(edges, position(topic)), topic)
        number += 1
    return list(topics.values())


def look_up(scene: Scene, topics: Iterable[str], *, at_once: int) -> dict[str, str]:
    """Bundle to owner, after lookups of the topics at four brokers in turn."""
    lookups = [scene.lookup(broker, seed=i) for i, broker in enumerate(BROKERS[:4])]
    with ThreadPoolExecutor(at_once) as pool:
        answers = list(
            pool.map(lambda asked: asked[0].lookup(asked[1]), zip(cycle(lookups), topics))
        )
    assert {answer.kind for answer in answers} == {AnswerKind.CONNECT}
    return {str(answer.bundle): str(answer.broker) for answer in answers}


def spread(owners: dict[str, str], namespace: str, brokers: Iterable[str]) -> list[int]:
    counts = Counter(owner for bundle, owner in owners.items() if namespace_of(bundle) == namespace)
    return sorted(counts[broker] for broker in brokers)


@pytest.mark.parametrize("at_once", [1, 8])
def test_a_namespaces_bundles_are_placed_evenly(scene: Scene, at_once: int) -> None:
    topics = free(scene, NAMESPACE, 32)
    publish(scene, Hints(round=1, candidates=candidates(BROKERS), each=0.001, evenly=True))
    owners = look_up(scene, topics, at_once=at_once)
    assert spread(owners, NAMESPACE, BROKERS) == [5, 5, 5, 5, 6, 6]


def test_sixteen_bundles_go_to_sixteen_brokers(client: Redis, cluster: str) -> None:
    """Item 002-06 of the administrator's guide: one each, where load alone would pile them up."""
    scene, brokers = Scene(client, cluster), [f"broker-{number}:8080" for number in range(16)]
    scene.obeying(*brokers)
    topics = free(scene, NAMESPACE, 16)
    found = tuple(Candidate(broker, 0.04 * row) for row, broker in enumerate(brokers))
    publish(scene, Hints(round=1, candidates=found, each=0.001, evenly=True))
    owners = look_up(scene, topics, at_once=1)
    assert spread(owners, NAMESPACE, brokers) == [1] * 16


def test_new_hints_do_not_forget_what_is_where(scene: Scene) -> None:
    topics = free(scene, NAMESPACE, 16)
    owners: dict[str, str] = {}
    for number, topic in enumerate(topics):
        hints = Hints(round=number, candidates=candidates(BROKERS), each=0.001, evenly=True)
        publish(scene, hints)
        owners |= look_up(scene, [topic], at_once=1)
    assert spread(owners, NAMESPACE, BROKERS) == [2, 2, 3, 3, 3, 3]


def test_without_evenness_the_idle_broker_gets_more(scene: Scene) -> None:
    topics = free(scene, NAMESPACE, 32)
    publish(scene, Hints(round=1, candidates=candidates(BROKERS), each=0.001))
    owners = look_up(scene, topics, at_once=1)
    assert spread(owners, NAMESPACE, BROKERS)[-1] > 10
    assert not scene.client.exists(tallies_key(scene.cluster))


@pytest.mark.parametrize("at_once", [1, 8])
def test_a_group_spreads_over_domains_and_brokers(scene: Scene, at_once: int) -> None:
    members = tuple(f"t/member-{i}" for i in range(6))
    topics = [topic for namespace in members for topic in free(scene, namespace, 1)]
    domains = dict(zip(BROKERS, ("x", "x", "x", "y", "y", "y"), strict=True))
    hints = Hints(
        round=1,
        candidates=candidates(BROKERS),
        each=0.001,
        groups={"g": members},
        domains=domains,
    )
    publish(scene, hints)
    first = look_up(scene, topics[:2], at_once=at_once)
    assert {domains[owner] for owner in first.values()} == {"x", "y"}
    owners = first | look_up(scene, topics[2:], at_once=at_once)
    assert sorted(owners.values()) == list(BROKERS)


@pytest.mark.parametrize("at_once", [1, 8])
def test_isolation_holds_for_every_namespace_of_a_policy(scene: Scene, at_once: int) -> None:
    own = BROKERS[4:]
    spaces = [f"vip/n{i}" for i in range(20)]
    topics = [topic for namespace in spaces for topic in free(scene, namespace, 2)]
    pool = Pool(namespaces=("vip/.*",), candidates=candidates(own))
    hints = Hints(
        round=1, candidates=candidates(BROKERS[:4]), each=0.001, evenly=True, pools=(pool,)
    )
    publish(scene, hints)
    owners = look_up(scene, topics, at_once=at_once)
    assert all(spread(owners, namespace, own) == [1, 1] for namespace in spaces)


def test_a_spoiled_tally_stops_no_lookup(scene: Scene) -> None:
    topics = free(scene, NAMESPACE, 12)
    publish(scene, Hints(round=1, candidates=candidates(BROKERS), each=0.001, evenly=True))
    for number, broker in enumerate(BROKERS):
        value = ("x", "1e3", "0x10", "9" * 12, "-4", "")[number]
        scene.client.hset(tallies_key(scene.cluster), f"n {NAMESPACE} {broker}", value)
    owners = look_up(scene, topics, at_once=1)
    assert spread(owners, NAMESPACE, BROKERS) == [2] * 6


def test_tallies_of_a_wrong_type_stop_no_lookup(scene: Scene) -> None:
    topics = free(scene, NAMESPACE, 12)
    publish(scene, Hints(round=1, candidates=candidates(BROKERS), each=0.001, evenly=True))
    scene.client.set(tallies_key(scene.cluster), "x")
    owners = look_up(scene, topics, at_once=1)
    assert spread(owners, NAMESPACE, BROKERS) == [2] * 6


def test_of_too_many_bundles_only_what_was_placed_since_the_hints_counts(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sinks.redis.hints.MOST_COUNTED", 11)
    topics = free(scene, NAMESPACE, 12)
    publish(scene, Hints(round=1, candidates=candidates(BROKERS), each=0.001, evenly=True))
    assert PlacementHints(scene.client).count(scene.cluster, [NAMESPACE], []).records == {}
    owners = look_up(scene, topics, at_once=4)
    assert spread(owners, NAMESPACE, BROKERS) == [2] * 6


def test_the_partitions_of_a_topic_spread(scene: Scene) -> None:
    """64 partitions on 16 bundles and 4 brokers: 4 bundles each, and so some 16 partitions."""
    free(scene, NAMESPACE, 16)
    four = BROKERS[:4]
    publish(scene, Hints(round=1, candidates=candidates(four), each=0.001, evenly=True))
    partitions = [f"{TOPIC}-partition-{i}" for i in range(64)]
    lookups = [scene.lookup(broker, seed=i) for i, broker in enumerate(four)]
    with ThreadPoolExecutor(8) as pool:
        answers = list(
            pool.map(lambda asked: asked[0].lookup(asked[1]), zip(cycle(lookups), partitions))
        )
    records = OwnershipStore(scene.client).records(scene.cluster)
    bundles = Counter(record.owner for record in records.values() if record.owner)
    # The bundles that hold a partition, most of the 16, are even over the brokers.
    assert max(bundles.values()) - min(bundles[broker] for broker in four) <= 1
    assert sum(bundles.values()) == len({answer.bundle for answer in answers}) >= 14
    served = Counter(answer.broker for answer in answers)
    assert set(served) == set(four)
    assert min(served.values()) >= 8
