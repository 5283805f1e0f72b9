"""What is wrong with a topic is judged by values: a Kafka of three brokers is not needed."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import pytest

from sinks.kafka.topic_rules import Found, choose_replication, judge
from sinks.kafka.topics import TOPICS
from trimtab.wire import keys

BY_NAME = {topic.name: topic for topic in TOPICS}

SOUND: Mapping[str, str] = MappingProxyType(
    {
        "cleanup.policy": "delete",
        "retention.ms": "604800000",
        "min.insync.replicas": "2",
        "unclean.leader.election.enable": "false",
        "message.timestamp.type": "LogAppendTime",
    }
)
COMPACTED = {**SOUND, "cleanup.policy": "compact"}


def findings(name: str, found: Found, brokers: int = 3) -> list[tuple[str, str, bool]]:
    return [
        (each.setting, each.wanted, each.vital) for each in judge(BY_NAME[name], found, brokers)
    ]


@pytest.mark.parametrize("name", [keys.OWNERSHIP, keys.GENERATIONS])
@pytest.mark.parametrize("policy", ["delete", "compact,delete"])
def test_claims_and_ownership_that_are_deleted_by_time_refuse_the_start(
    name: str, policy: str
) -> None:
    found = Found(1, 3, {**SOUND, "cleanup.policy": policy})
    assert findings(name, found) == [("cleanup.policy", "compact", True)]
    assert findings(name, Found(1, 3, COMPACTED)) == []


@pytest.mark.parametrize("policy", ["compact", "compact,delete"])
@pytest.mark.parametrize("name", sorted(BY_NAME.keys() - {keys.OWNERSHIP, keys.GENERATIONS}))
def test_topics_whose_every_record_counts_may_not_be_compacted(name: str, policy: str) -> None:
    """An intent, for one, would be gone once its cluster has another, be the job away or not."""
    found = Found(1, 3, {**SOUND, "cleanup.policy": policy})
    assert findings(name, found) == [("cleanup.policy", "delete", False)]


def test_claims_on_two_partitions_refuse_the_start() -> None:
    assert findings(keys.GENERATIONS, Found(2, 3, COMPACTED)) == [("partitions", "1", True)]


def test_rounds_on_two_partitions_do_not() -> None:
    assert findings(keys.ROUNDS, Found(2, 3, SOUND)) == [("partitions", "1", False)]


@pytest.mark.parametrize("name", sorted(BY_NAME))
@pytest.mark.parametrize(
    ("brokers", "replicas", "in_sync", "wanted"),
    [
        pytest.param(1, 1, "1", [], id="one broker"),
        pytest.param(2, 2, "2", [], id="two brokers"),
        pytest.param(
            2,
            1,
            "1",
            [("replicas", "2", False), ("min.insync.replicas", "2", False)],
            id="two brokers, one replica",
        ),
        pytest.param(3, 3, "2", [], id="three brokers"),
        pytest.param(9, 3, "2", [], id="nine brokers"),
        pytest.param(3, 2, "2", [("replicas", "3", False)], id="three brokers, two replicas"),
        pytest.param(3, 3, "1", [("min.insync.replicas", "2", False)], id="one in sync will do"),
    ],
)
def test_an_acknowledged_record_must_be_on_two_machines_where_there_are_two(
    name: str, brokers: int, replicas: int, in_sync: str, wanted: list[tuple[str, str, bool]]
) -> None:
    sound = COMPACTED if "cleanup.policy" in BY_NAME[name].needs else SOUND
    found = Found(1, replicas, {**sound, "min.insync.replicas": in_sync})
    assert findings(name, found, brokers) == wanted


@pytest.mark.parametrize("name", [keys.OWNERSHIP, keys.GENERATIONS])
def test_a_leader_that_lacks_records_is_not_to_be_elected(name: str) -> None:
    config = {**COMPACTED, "unclean.leader.election.enable": "true"}
    assert findings(name, Found(1, 3, config)) == [
        ("unclean.leader.election.enable", "false", False)
    ]


@pytest.mark.parametrize(
    ("retention", "wanted"),
    [
        pytest.param("60000", [("retention.ms", "86400000", False)], id="a minute"),
        pytest.param("86400000", [], id="a day"),
        pytest.param("-1", [], id="for ever"),
    ],
)
def test_what_operators_say_is_kept_for_a_day(
    retention: str, wanted: list[tuple[str, str, bool]]
) -> None:
    found = Found(1, 3, {**SOUND, "retention.ms": retention})
    assert findings(keys.CONTROL, found) == wanted


def test_a_new_topic_is_as_the_rules_want_it() -> None:
    for brokers in range(2, 6):
        replicas, config = choose_replication(brokers)
        assert findings(keys.COMMANDS, Found(1, replicas, {**SOUND, **config}), brokers) == []


def test_a_finding_says_what_to_type() -> None:
    [finding] = judge(BY_NAME[keys.CONTROL], Found(1, 3, {**SOUND, "retention.ms": "1"}), 3)
    assert str(finding) == "trimtab.control: retention.ms is 1, must be at least 86400000"
    assert finding.remedy("kafka:9092").endswith(
        "--entity-name trimtab.control --add-config retention.ms=86400000"
    )
