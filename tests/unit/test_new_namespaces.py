"""A namespace that an operator creates gets its bundles, each at a broker, or nothing at all."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.support.clusters_by_rows import change_row, held, said
from tests.support.fleets import fleet, round_at, two_each, woken
from tests.support.outcomes import after
from trimtab.cluster.intents.flaws import MOST_BUNDLES
from trimtab.model import Epoch
from trimtab.ownership import State
from trimtab.wire.intent import IntentKind
from trimtab.wire.rows import Row

HALVES = ("new/ns/0x00000000_0x80000000", "new/ns/0x80000000_0xffffffff")


def create(name: str = "new/ns", *positions: int, own_id: str = "1") -> Row:
    return said(IntentKind.NAMESPACE, id=own_id, name=name, positions=positions)


def test_each_bundle_goes_to_a_broker_in_the_same_batch() -> None:
    record = round_at(two_each(), 2000, create("new/ns", 0x80000000))
    assert [(r.bundle, r.event, r.reason, r.epoch) for r in record.repairs] == [
        (bundle, "assign", "created", Epoch(0, 0)) for bundle in HALVES
    ]
    assert len({r.broker for r in record.repairs}) == 2


def test_bundles_spread_evenly() -> None:
    edges = [i << 29 for i in range(1, 8)]
    record = round_at(two_each(), 2000, create("new/ns", *edges))
    given = Counter(r.broker for r in record.repairs)
    assert sorted(given.values()) == [2, 2, 2, 2]


def test_it_is_done_once_a_broker_serves_each() -> None:
    it = two_each()
    assert after(it, 2000, create("new/ns", 0x80000000)) == [("1", "accepted", "")]
    given = [change_row(bundle, "b:1", 1, State.ASSIGNING) for bundle in HALVES]
    assert after(it, 2100, *given) == []
    assert after(it, 2200, change_row(HALVES[0], "b:1", 2)) == []
    assert after(it, 2300, change_row(HALVES[1], "b:1", 2)) == [("1", "done", "")]
    assert held(it, 3000).repairs == ()
    assert it.memory.created == ()


def test_what_was_given_is_waited_for_and_then_given_again() -> None:
    """The request of the first round may have been lost with its job."""
    it = two_each()
    _, timer_ms = it.take([create()], 2000)
    assert timer_ms == 32_000
    again = woken(it, timer_ms)
    assert [(r.bundle, r.reason) for r in again.repairs] == [
        ("new/ns/0x00000000_0xffffffff", "created")
    ]


@pytest.mark.parametrize(
    ("name", "positions", "rule", "says"),
    [
        ("t/ns", (), "namespace-exists", "name: t/ns exists; bundles: 8"),
        ("nonsense", (), "invalid-namespace", "is not tenant/namespace"),
        ("a/b/c", (), "invalid-namespace", "is not tenant/namespace"),
        ("a/b c", (), "invalid-namespace", "is not tenant/namespace"),
        ("", (), "no-subject", "name: says nothing"),
        ("new/ns", (5, 5), "invalid-namespace", "must ascend"),
        ("new/ns", (6, 5), "invalid-namespace", "must ascend"),
        ("new/ns", (0,), "invalid-namespace", "must ascend"),
        ("new/ns", (0xFFFFFFFF,), "invalid-namespace", "must ascend"),
        ("new/ns", tuple(range(1, MOST_BUNDLES + 1)), "invalid-namespace", "more than 1024"),
    ],
)
def test_what_cannot_be_is_refused(
    name: str, positions: tuple[int, ...], rule: str, says: str
) -> None:
    it = two_each()
    assert after(it, 2000, create(name, *positions)) == [("1", "refused", rule)]
    assert it.memory.created == ()
    (problem,) = it.memory.problems
    assert says in problem


def test_the_most_bundles_are_taken() -> None:
    edges = range(1, MOST_BUNDLES)
    assert after(two_each(), 2000, create("new/ns", *edges)) == [("1", "accepted", "")]


def test_a_namespace_is_created_once() -> None:
    it = two_each()
    it.take([create()], 2000)
    assert after(it, 2100, create(own_id="2")) == [("2", "refused", "namespace-exists")]


def test_a_job_that_only_observes_creates_nothing() -> None:
    it = fleet({}, round__observe_only=True)
    assert after(it, 2000, create()) == [("1", "refused", "observing")]


def test_a_namespace_waits_while_ownership_is_in_doubt() -> None:
    it = two_each()
    doubt = said(IntentKind.DOUBT, name="clock", level="unstable")
    assert after(it, 2000, doubt, create()) == [("1", "accepted", "")]
    assert it.memory.in_flight == {}
    calm = said(IntentKind.DOUBT, name="clock", level="stable")
    record = round_at(it, 2500, calm)
    assert [r.reason for r in record.repairs] == ["created"]
