"""The log stores each message once, in order, and nothing of a broker that lost the topic."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from itertools import product
from pathlib import Path

import pytest

from simulation.traffic.frames import NONE
from simulation.traffic.standing import AFTER, IllegalStep, Standing, Step
from simulation.traffic.topic_log import Fenced, Moved, Topic, TopicLog
from tests.traffic.town import BUNDLE, TOPIC
from trimtab.migration.migration import Target
from trimtab.model import Epoch

OLD, NEW = Epoch(1, 5), Epoch(2, 1)
GREEN = Target(brokerServiceUrl="pulsar://green:6650")


@pytest.fixture
def log(tmp_path: Path) -> Iterator[TopicLog]:
    made = TopicLog(tmp_path / "log.db", "blue")
    yield made
    made.close()


@pytest.fixture
def topic(log: TopicLog) -> Topic:
    with log.transaction():
        return log.make(TOPIC, OLD)


def found(log: TopicLog, fence: Epoch = OLD) -> Topic:
    with log.transaction():
        topic = log.find(TOPIC, fence)
    assert topic is not None
    return topic


def append(log: TopicLog, *sequences: int, fence: Epoch = OLD, producer: str = "p") -> None:
    with log.transaction():
        for sequence in sequences:
            topic = log.find(TOPIC, fence)
            assert topic is not None
            log.append(topic, producer, sequence, "k", f"{producer}-{sequence}")


def stand(log: TopicLog, *steps: Step) -> Topic:
    with log.transaction():
        topic = log.find(TOPIC, OLD)
        assert topic is not None
        for step in steps:
            topic = log.step(topic, step, GREEN)
    return topic


def values(log: TopicLog) -> list[str]:
    return [entry.value for entry in log.read(TOPIC, 0, 100)]


@pytest.mark.usefixtures("topic")
def test_a_message_that_is_sent_again_is_stored_once(log: TopicLog) -> None:
    append(log, 0, 1, 1, 0, 2)
    append(log, 1, producer="q")
    assert values(log) == ["p-0", "p-1", "p-2", "q-1"]
    assert [log.highest(found(log), name) for name in ("p", "q", "r")] == [2, 1, NONE]


@pytest.mark.usefixtures("topic")
def test_an_earlier_owner_writes_nothing_once_a_later_one_has_the_topic(log: TopicLog) -> None:
    append(log, 0, fence=OLD)
    found(log, NEW)
    with pytest.raises(Fenced):
        append(log, 1, fence=OLD)
    append(log, 1, fence=NEW)
    assert values(log) == ["p-0", "p-1"]


@pytest.mark.usefixtures("topic")
def test_a_fence_that_was_put_up_in_a_transaction_that_failed_is_not_there(log: TopicLog) -> None:
    with suppress(ZeroDivisionError), log.transaction():
        log.find(TOPIC, NEW)
        _ = 1 / 0
    append(log, 0, fence=OLD)
    assert values(log) == ["p-0"]


@pytest.mark.usefixtures("topic")
def test_a_terminated_topic_stores_nothing_more_and_says_where_it_goes_on(log: TopicLog) -> None:
    append(log, 0)
    stand(log, Step.TERMINATE)
    with pytest.raises(Moved) as refused:
        append(log, 1)
    assert refused.value.urls == GREEN
    assert values(log) == ["p-0"]


def test_the_table_of_standings(log: TopicLog) -> None:
    """Each step, from each standing: it has its effect, or nothing changes."""
    for number, (standing, step) in enumerate(product(Standing, Step)):
        name = f"{TOPIC}-{number}"
        ways = {
            Standing.ACTIVE: (),
            Standing.TERMINATED: (Step.TERMINATE,),
            Standing.REMOVED: (Step.TERMINATE, Step.REMOVE),
        }
        with log.transaction():
            topic = log.make(name, OLD)
            for each in ways[standing]:
                topic = log.step(topic, each, GREEN)
            after = AFTER[step].get(standing)
            if after is None:
                with pytest.raises(IllegalStep):
                    log.step(topic, step, GREEN)
            else:
                log.step(topic, step, GREEN)
            kept = log.find(name, OLD)
        assert kept is not None
        assert kept.standing is (after or standing), (standing, step)


def test_a_subscription_begins_where_it_is_made_and_keeps_its_place(
    log: TopicLog, topic: Topic
) -> None:
    append(log, 0, 1, 2)
    with log.transaction():
        assert log.subscribe(topic, "early", 0) == 0
        assert log.subscribe(found_in(log), "late", found_in(log).next) == 3
        log.acknowledge(found_in(log), "early", 1)
        log.acknowledge(found_in(log), "early", 0)
        assert log.subscribe(found_in(log), "early", 0) == 2
        assert log.backlogs(found_in(log)) == {"early": 1, "late": 0}


def found_in(log: TopicLog) -> Topic:
    """In a transaction that is under way."""
    topic = log.find(TOPIC, OLD)
    assert topic is not None
    return topic


def test_what_a_subscription_has_still_to_read_is_not_removed(log: TopicLog, topic: Topic) -> None:
    with log.transaction():
        log.subscribe(topic, "s", 0)
    append(log, 0)
    with pytest.raises(IllegalStep):
        stand(log, Step.TERMINATE, Step.REMOVE)
    with pytest.raises(IllegalStep), log.transaction():
        log.release(found_in(log), "s")
    with log.transaction():
        log.acknowledge(found_in(log), "s", 0)
        log.release(found_in(log), "s")
        assert log.backlogs(found_in(log)) == {}
    assert stand(log, Step.TERMINATE, Step.REMOVE).standing is Standing.REMOVED


def test_a_removed_topic_remembers_who_wrote_and_comes_back_with_its_subscriptions(
    log: TopicLog, topic: Topic
) -> None:
    with log.transaction():
        log.subscribe(topic, "s", 0)
    append(log, 0, 1)
    with log.transaction():
        log.acknowledge(found_in(log), "s", 1)
        log.release(found_in(log), "s")
    # What it took counts, if it is asked for by the cluster that handed it over.
    assert stand(log, Step.TERMINATE, Step.REMOVE, Step.REOPEN).written
    assert values(log) == []
    assert stand(log, Step.TERMINATE, Step.REMOVE).standing is Standing.REMOVED
    with log.transaction():
        assert not log.hand_over(found_in(log)).written
    append(log, 1, 2)
    assert values(log) == ["p-2"]
    assert found(log).written
    with log.transaction():
        assert log.backlogs(found_in(log)) == {"s": 1}


def test_topics_are_found_by_their_bundle(log: TopicLog) -> None:
    with log.transaction():
        for number in range(20):
            log.make(f"{TOPIC}-{number}", OLD)
        log.make("persistent://t/other/x", OLD)
    low, high = "t/ns/0x00000000_0x7fffffff", "t/ns/0x7fffffff_0xffffffff"
    assert len(log.names(low)) + len(log.names(high)) == len(log.names(BUNDLE)) == 20
    assert log.names(low)
    assert log.names(high)


_KILLED = """
import os, signal, sys
from pathlib import Path
from simulation.traffic.topic_log import TopicLog
from trimtab.migration.migration import Target
from trimtab.model import Epoch
from trimtab.migration.migration import Target
log = TopicLog(Path(sys.argv[1]), "blue")
for sequence in range(3):
    with log.transaction():
        topic = log.make("persistent://t/ns/orders", Epoch(1, 5))
        topic = log.append(topic, "p", 2 * sequence, "k", f"p-{2 * sequence}")
        topic = log.append(topic, "p", 2 * sequence + 1, "k", f"p-{2 * sequence + 1}")
        if sequence == 2:
            os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_was_committed_survives_a_kill_and_the_rest_leaves_no_trace(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    assert subprocess.run([sys.executable, "-c", _KILLED, str(path)], check=False).returncode == -9
    log = TopicLog(path, "blue")
    assert values(log) == [f"p-{n}" for n in range(4)]
    log.close()
