"""What may become of a topic that migrates, and what its owner does next."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.migrations import RUNNING
from tests.support.waves import is_in, takes_new, wave_of
from trimtab.migration.flaws import scope_flaws
from trimtab.migration.life import ONWARD, MigrationState
from trimtab.migration.migration import Counts, Gate, Migration, Wave
from trimtab.migration.scopes import (
    CLUSTER,
    covers,
    is_scope,
    is_system,
    namespace_of,
    overlap,
)
from trimtab.migration.steps import Step, next_step
from trimtab.migration.topic_life import (
    REDIRECTING,
    TRANSITIONS,
    Given,
    TopicEvent,
    TopicState,
    allows,
)
from trimtab.store.lookup import parse_topic
from trimtab.store.ring import position

TOPIC = "persistent://public/orders/invoices"
OTHERS = [
    "persistent://public/orders/mail",
    "persistent://public/stock/parts",
    "non-persistent://public/orders/invoices",
]

STATES = list(TopicState)
PARTITION = f"{TOPIC}-partition-3"
topics = st.sampled_from([TOPIC, PARTITION, f"{TOPIC}-partition-x", *OTHERS])
scopes = st.sampled_from([CLUSTER, "public/orders", "public/stock", TOPIC, *OTHERS])


def at(state: MigrationState) -> Migration:
    return replace(RUNNING, state=state)


def steps(migration: Migration) -> list[str]:
    return [next_step(migration, 0, state, stays=False).value for state in STATES[1:]]


def test_a_topic_goes_to_green_by_one_way() -> None:
    state, way = TopicState.UNKNOWN, [TopicState.UNKNOWN]
    for event in ("enlist", "hold", "terminate", "drain", "drain", "finish"):
        state = TRANSITIONS[state][TopicEvent(event)].state
        way.append(state)
    assert [each.value for each in way] == [
        "unknown",
        "active",
        "replicating",
        "terminated",
        "draining",
        "draining",
        "migrated",
    ]


def test_a_running_migration_asks_each_state_for_its_step() -> None:
    assert steps(at(MigrationState.RUNNING)) == ["begin", "catch-up", "drain", "drain", "rest"]


def test_a_pause_begins_nothing_and_ends_what_has_begun() -> None:
    assert steps(at(MigrationState.PAUSED)) == ["rest", "catch-up", "drain", "drain", "rest"]


def test_a_rollback_releases_producers_and_asks_green_for_the_rest() -> None:
    back = at(MigrationState.ROLLING_BACK)
    assert steps(back) == ["rest", "release", "take-back", "take-back", "take-back"]
    # A store that was restored says this of topics that were back.
    assert steps(at(MigrationState.ROLLED_BACK)) == steps(back)


def test_a_topic_that_green_has_written_goes_on_in_a_rollback() -> None:
    back = at(MigrationState.ROLLING_BACK)
    for state in (TopicState.TERMINATED, TopicState.DRAINING):
        assert next_step(back, 0, state, stays=True) is Step.DRAIN
    assert next_step(back, 0, TopicState.MIGRATED, stays=True) is Step.REST


def test_a_topic_waits_for_its_wave() -> None:
    assert next_step(RUNNING, 1, TopicState.ACTIVE, stays=False) is Step.REST
    assert next_step(replace(RUNNING, wave=1), 1, TopicState.ACTIVE, stays=False) is Step.BEGIN


def test_only_a_rollback_lets_blue_accept_writes_again() -> None:
    """Blue and green would both accept writes otherwise."""
    back = [
        effect
        for state in REDIRECTING
        for effect in TRANSITIONS[state].values()
        if effect.state not in REDIRECTING
    ]
    assert {effect.given for effect in back} == {Given.ROLLING_BACK}
    assert {effect.state for effect in back} == {TopicState.ACTIVE}


def test_a_topic_that_is_gone_from_blue_is_not_enlisted_again() -> None:
    assert not allows(TopicState.MIGRATED, TopicEvent.ENLIST)
    assert not any(allows(state, TopicEvent.FORGET) for state in REDIRECTING)


def test_each_state_but_unknown_can_be_reached_and_left() -> None:
    reached = {effect.state for row in TRANSITIONS.values() for effect in row.values()}
    assert reached == set(TopicState)
    assert all(TRANSITIONS[state] for state in TopicState)


@given(scopes, topics)
def test_a_scope_covers_a_topic_exactly_if_it_overlaps_with_it(scope: str, topic: str) -> None:
    assert covers(scope, topic) is overlap(scope, topic)


@pytest.mark.parametrize("name", ["a b", "a\tb", "ü", "a://b", "%2F"])
def test_a_topic_may_have_any_name_in_its_namespace(name: str) -> None:
    topic = f"non-persistent://public/orders/{name}"
    namespace = parse_topic(topic)[1]
    assert covers(namespace, topic)
    assert not covers("public/order", topic)
    assert namespace_of(topic) == namespace


@given(scopes, scopes)
def test_scopes_overlap_both_ways(one: str, other: str) -> None:
    assert overlap(one, other) is overlap(other, one)


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        (CLUSTER, True),
        ("public/orders", True),
        (TOPIC, True),
        ("non-persistent://t/n/x", True),
        ("", False),
        ("public", False),
        ("public/orders/x", False),
        ("persistent://public/orders", False),
        ("persistent://public/orders/a b", False),
        ("Cluster", False),
    ],
)
def test_a_scope_is_the_cluster_a_namespace_or_a_topic(text: str, is_one: bool) -> None:
    assert is_scope(text) is is_one


def test_topics_for_pulsars_own_use_do_not_migrate() -> None:
    assert is_system("persistent://public/orders/__change_events")
    assert is_system("persistent://public/orders/__transaction_buffer_snapshot")
    assert is_system("persistent://pulsar/10.0.0.7:8080/healthcheck")
    assert is_system("non-persistent://pulsar/east/10.0.0.7:8080/healthcheck")
    assert is_system("persistent://pulsar/system/loadbalancer")
    assert is_system("persistent://public/orders/__change_events-partition-0")
    assert not is_system(TOPIC)


def test_a_topic_takes_all_of_its_partitions_along() -> None:
    assert covers(TOPIC, PARTITION)
    assert not covers(TOPIC, f"{TOPIC}-partition-")
    assert not covers(TOPIC, f"{TOPIC}-partition-3-partition-x")
    assert not covers(OTHERS[0], PARTITION)
    assert not covers(f"non-{TOPIC}", PARTITION)
    assert not overlap("public/orders", "public/orders-partition-3")
    for number in range(64):
        waves = (Wave((TOPIC,), 0.5), Wave(("public/orders",), 0.5))
        topic = f"{TOPIC}{number}"
        it = replace(RUNNING, waves=waves)
        assert {wave_of(it, f"{topic}-partition-{n}") for n in range(9)} == {wave_of(it, topic)}


def test_a_partition_alone_is_no_scope() -> None:
    waves = (Wave((PARTITION,)),)
    assert list(scope_flaws(PARTITION, waves, Gate())) == [
        f"scope: {PARTITION} is a partition, and goes with its topic: name {TOPIC}",
        f"waves: wave 1: {PARTITION} is a partition, and goes with its topic: name {TOPIC}",
    ]


def test_a_topic_is_in_the_first_wave_that_has_it() -> None:
    waves = (Wave(("public/stock",)), Wave((CLUSTER,), 0.5), Wave(("public/orders",)))
    it = replace(RUNNING, waves=waves)
    assert wave_of(it, OTHERS[1]) == 0
    assert {wave_of(it, f"persistent://public/orders/{n}") for n in range(20)} == {1, 2}
    assert {wave_of(it, f"persistent://public/other/{n}") for n in range(20)} == {1, 3}
    assert it.last_wave == 3


def test_a_share_of_topics_is_a_share_of_the_ring() -> None:
    wave = Wave((CLUSTER,), 0.25)
    taken = sum(is_in(wave, f"persistent://public/orders/{number}") for number in range(4000))
    assert 900 < taken < 1100
    assert not is_in(Wave((CLUSTER,), 0.0), TOPIC)


def test_a_share_of_topics_is_a_share_of_every_bundle() -> None:
    """It was that of the ring of bundles: one owner, of a few bundles, had all of a first wave."""
    wave, taken, there = Wave((CLUSTER,), 0.1), Counter[int](), Counter[int]()
    for number in range(8000):
        topic = f"persistent://public/orders/topic-{number}"
        bundle = position(topic) // (1 << 30)
        there[bundle] += 1
        taken[bundle] += is_in(wave, topic)
    assert sorted(there) == [0, 1, 2, 3]
    assert all(0.06 < taken[each] / there[each] < 0.14 for each in there)


@pytest.mark.parametrize("state", MigrationState)
def test_new_topics_of_a_migrated_scope_are_created_on_green(state: MigrationState) -> None:
    it = replace(at(state), scope="public/orders")
    assert takes_new(it, TOPIC) is (state in ONWARD)
    assert not takes_new(it, OTHERS[1])


def test_topics_that_had_migrated_before_do_not_count_for_the_whole() -> None:
    whole = replace(RUNNING, apart=("public/orders", OTHERS[1]))
    left = [TOPIC, PARTITION, OTHERS[0], OTHERS[2], OTHERS[1], f"{OTHERS[1]}-partition-0"]
    assert not any(whole.has(topic) or takes_new(whole, topic) for topic in left)
    assert takes_new(whole, "persistent://public/stock/bolts")
    touched = [s for s in ("public/orders", "public/stock", OTHERS[1], TOPIC) if whole.touches(s)]
    assert touched == ["public/stock"]


def test_new_topics_of_a_wave_that_waits_are_created_on_blue() -> None:
    it = replace(RUNNING, waves=(Wave(("public/stock",)),))
    assert (takes_new(it, OTHERS[1]), takes_new(it, TOPIC)) == (True, False)


def test_counts_add_up() -> None:
    one = Counts(active=3, replicating=1, terminated=1, draining=2, migrated=4, backlog=7)
    assert (one.left, one.begun, one.topics) == (7, 8, 11)
    assert it_of(one, one).total == Counts(
        active=6, replicating=2, terminated=2, draining=4, migrated=8, backlog=14
    )


def it_of(*counts: Counts) -> Migration:
    return replace(RUNNING, counts=counts)


def test_every_legal_step_ends_in_an_event_of_the_table() -> None:
    """A step whose events the script refuses would be tried for ever."""
    events = {
        Step.BEGIN: ("hold", "terminate"),
        Step.CATCH_UP: ("terminate",),
        Step.DRAIN: ("drain", "finish"),
        Step.RELEASE: ("reopen",),
        Step.TAKE_BACK: ("reopen", "stay"),
    }
    for migration, state, stays in itertools.product(MigrationState, STATES[1:], (False, True)):
        step = next_step(at(migration), 0, state, stays=stays)
        for event in events.get(step, ()):
            assert allows(state, TopicEvent(event)), (migration, state, step, event)
