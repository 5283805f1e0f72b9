"""Topics go to a Pulsar and come back, by what its admin paths can do and no more."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from agent.migration.port import CannotMigrate
from simulation.traffic.green import GivenBack, Green
from tests.support.pulsar_cluster import PulsarCluster, pulsar_cluster
from trimtab.migration.migration import Target

NAME = "public/default/orders"
TOPIC = f"persistent://{NAME}"
HOME = Target(serviceUrl="http://blue:8080", brokerServiceUrl="pulsar://blue:6650")


@pytest.fixture
def pulsar() -> Iterator[PulsarCluster]:
    with pulsar_cluster() as (cluster, url):
        cluster_urls[id(cluster)] = url
        yield cluster


cluster_urls: dict[int, str] = {}


def green(cluster: PulsarCluster) -> Green:
    """As the owner of the topic's bundle asks; another one knows nothing of what was asked."""
    return Green(Target(serviceUrl=cluster_urls[id(cluster)]))


def test_a_topic_that_took_no_write_there_is_ended_and_names_its_subscriptions(
    pulsar: PulsarCluster,
) -> None:
    green(pulsar).create(TOPIC, ["s"])
    pulsar.topic(TOPIC).cursors["began-there"] = -1
    pulsar.topic(TOPIC).cursors["pulsar.repl.west"] = -1
    for _ in range(2):
        # Again: the answer may be lost, or the owner is another one.
        assert green(pulsar).give_back(TOPIC, HOME) == GivenBack(True, ("began-there", "s"))
    assert pulsar.topic(TOPIC).terminated


def test_a_topic_is_kept_there_when_it_has_ended_as_its_consumers_would_make_it_again(
    pulsar: PulsarCluster,
) -> None:
    pulsar.attached = True
    green(pulsar).create(TOPIC, ["s"])
    green(pulsar).give_back(TOPIC, HOME)
    assert pulsar.topic(TOPIC).terminated


def test_a_topic_that_took_a_write_there_stays_and_takes_more(pulsar: PulsarCluster) -> None:
    green(pulsar).create(TOPIC, ["s"])
    pulsar.topic(TOPIC).write()
    assert green(pulsar).give_back(TOPIC, HOME) == GivenBack(False)
    pulsar.topic(TOPIC).write()


def test_a_write_is_found_though_all_is_read_and_the_topic_was_unloaded(
    pulsar: PulsarCluster,
) -> None:
    """Its counters begin at nothing, and its ledgers are gone."""
    green(pulsar).create(TOPIC, ["s"])
    pulsar.topic(TOPIC).write()
    pulsar.topic(TOPIC).read_and_unload("s")
    assert green(pulsar).give_back(TOPIC, HOME) == GivenBack(False)
    assert not pulsar.topic(TOPIC).terminated


def test_a_write_between_question_and_end_is_not_lost_and_a_person_is_told(
    pulsar: PulsarCluster,
) -> None:
    green(pulsar).create(TOPIC, ["s"])
    pulsar.writes_meanwhile = True
    for _ in range(2):
        with pytest.raises(CannotMigrate, match="took a write just before it was ended there"):
            green(pulsar).give_back(TOPIC, HOME)
    # Somebody has read it there, and deletes it.
    pulsar.writes_meanwhile = False
    pulsar.answer("DELETE", f"persistent/{NAME}?force=true", b"")
    assert green(pulsar).give_back(TOPIC, HOME) == GivenBack(True)
    assert pulsar.topic(TOPIC).terminated


def test_a_topic_that_is_not_persistent_stays_as_it_cannot_be_ended(pulsar: PulsarCluster) -> None:
    topic = f"non-persistent://{NAME}"
    green(pulsar).create(topic, [])
    assert green(pulsar).give_back(topic, HOME) == GivenBack(False)


def test_a_topic_that_came_back_from_there_goes_there_again(pulsar: PulsarCluster) -> None:
    """A topic that was ended takes no write ever again: it is created again."""
    green(pulsar).create(TOPIC, ["s"])
    green(pulsar).give_back(TOPIC, HOME)
    green(pulsar).create(TOPIC, ["s", "t"])
    assert not pulsar.topic(TOPIC).terminated
    assert pulsar.topic(TOPIC).cursors == {"s": -1, "t": -1}


def test_a_topic_that_was_written_there_before_is_refused_though_it_was_unloaded(
    pulsar: PulsarCluster,
) -> None:
    green(pulsar).create(TOPIC, ["s"])
    pulsar.topic(TOPIC).write()
    pulsar.topic(TOPIC).read_and_unload("s")
    with pytest.raises(CannotMigrate, match="messages that are not from here"):
        green(pulsar).create(TOPIC, ["s"])
    # What blue has ended is green's: it is made ready again, whatever green has taken meanwhile.
    green(pulsar).create(TOPIC, ["s"], begins=False)


def test_a_tenant_is_made_there_with_its_cluster(pulsar: PulsarCluster) -> None:
    green(pulsar).create("persistent://new/ns/orders", [])
    assert pulsar.tenants["new"] == ["green"]
