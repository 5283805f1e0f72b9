"""Topics' names, the edges of a namespace, and the draw of two among the best."""

from __future__ import annotations

from itertools import pairwise

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.model import Epoch, HashRange, InvalidName
from trimtab.ownership import State
from trimtab.store.lookup import STEPS, NotTiling, draw, edges_of, parse_topic
from trimtab.store.ring import equal_edges
from trimtab.wire.lookup import (
    RETRY_AFTER_MS,
    Answer,
    AnswerKind,
    Cause,
    answer_failed,
    answer_retry,
)
from trimtab.wire.ownership import Candidate


@pytest.mark.parametrize(
    ("topic", "whole", "namespace"),
    [
        ("persistent://t/ns/orders", "persistent://t/ns/orders", "t/ns"),
        ("non-persistent://t/ns/a b", "non-persistent://t/ns/a b", "t/ns"),
        ("persistent://t/cluster/ns/a/b", "persistent://t/cluster/ns/a/b", "t/cluster/ns"),
        ("t/ns/orders", "persistent://t/ns/orders", "t/ns"),
        ("orders-partition-3", "persistent://public/default/orders-partition-3", "public/default"),
    ],
)
def test_a_topic_names_its_namespace_as_in_pulsar(topic: str, whole: str, namespace: str) -> None:
    assert parse_topic(topic) == (whole, namespace)


@pytest.mark.parametrize(
    "topic",
    [
        "",
        "t/ns",
        "t/c/ns/orders",
        "t//orders",
        "://t/ns/orders",
        "kafka://t/ns/orders",
        "persistent://t/ns",
        "persistent://t/ns/",
        "persistent:///ns/orders",
        "persistent://t/c/ns/",
    ],
)
def test_what_cannot_be_a_topic_is_refused(topic: str) -> None:
    with pytest.raises(InvalidName):
        parse_topic(topic)


@given(st.integers(1, 300))
def test_the_edges_of_bundles_are_those_they_were_made_by(bundles: int) -> None:
    edges = equal_edges(bundles)
    assert edges_of([f"t/ns/{HashRange(*pair)}" for pair in pairwise(edges)]) == edges


def test_bundles_that_leave_a_hole_have_no_edges() -> None:
    with pytest.raises(NotTiling, match="nothing covers 0x40000000_0x80000000"):
        edges_of(["t/ns/0x00000000_0x40000000", "t/ns/0x80000000_0xffffffff"])


def test_every_state_has_its_step() -> None:
    assert STEPS.keys() == set(State)


@pytest.mark.parametrize("cause", Cause)
def test_a_cause_is_either_put_off_or_failed(cause: Cause) -> None:
    if cause in RETRY_AFTER_MS:
        assert answer_retry(cause).kind is AnswerKind.RETRY
        assert answer_retry(cause).after_ms > 0
    else:
        assert answer_failed(cause, "why").kind is AnswerKind.FAILED


def test_an_answer_reads_back_as_it_was_written() -> None:
    answer = Answer(kind=AnswerKind.CONNECT, bundle="t/ns/0x0", broker="a:8080", epoch=Epoch(3, 4))
    text = msgspec.json.encode(answer)
    assert text == b'{"kind":"connect","bundle":"t/ns/0x0","broker":"a:8080","epoch":[3,4]}'
    assert msgspec.json.decode(text, type=Answer) == answer


def drawn(loads: dict[str, float], placed: int = 0) -> str:
    """Everybody who is drawn now and then."""
    candidates = [Candidate(broker, load) for broker, load in loads.items()]
    rng = np.random.default_rng(1)
    draws = [draw(candidates, placed, 0.1, rng) for _ in range(200)]
    return "".join(sorted({candidate.broker for each in draws for candidate in each}))


@pytest.mark.parametrize(
    ("loads", "expected"),
    [
        pytest.param({"a": 0.1, "b": 0.2, "c": 0.7, "d": 0.8}, "ab", id="the lower half"),
        pytest.param({"d": 0.8, "b": 0.2, "c": 0.7, "a": 0.1}, "ab", id="in any order"),
        pytest.param({"a": 0.1, "b": 0.2, "c": 0.2, "d": 0.4}, "abc", id="with its ties"),
        pytest.param({"a": 0.1, "b": 0.2, "c": 0.3, "d": 0.9}, "abc", id="below the mean"),
        pytest.param({"a": 0.1, "b": 0.9}, "ab", id="two at least"),
        pytest.param({"a": 0.1}, "a", id="unless there is one"),
        pytest.param({}, "", id="or none"),
    ],
)
def test_those_that_are_good_enough_are_drawn(loads: dict[str, float], expected: str) -> None:
    assert drawn(loads) == expected


@pytest.mark.parametrize(("placed", "expected"), [(0, "ab"), (9, "ab"), (10, "abc"), (14, "abcd")])
def test_a_herd_overflows_when_the_idle_are_full(placed: int, expected: str) -> None:
    assert drawn({"a": 0.1, "b": 0.2, "c": 0.7, "d": 0.8}, placed) == expected


@given(
    st.dictionaries(st.text(min_size=1, max_size=3), st.floats(0, 1), min_size=2, max_size=30),
    st.integers(0, 1000),
)
def test_two_are_drawn_and_they_differ(loads: dict[str, float], seed: int) -> None:
    candidates = [Candidate(broker, load) for broker, load in loads.items()]
    first, second = draw(candidates, 0, 0.0, np.random.default_rng(seed))
    assert first.broker != second.broker
    worse = max(first.load, second.load)
    less = sum(load < worse for load in loads.values())
    assert less <= max(1, (len(loads) - 1) // 2) or worse <= sum(loads.values()) / len(loads)
