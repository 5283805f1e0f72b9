"""More than one batch takes: what is to be repaired follows in the next, and nothing waits behind
what cannot be; what only balances follows in a later round."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pytest

from tests.support.clusters import Broker, Bundle, cluster
from tests.support.clusters_by_rows import change_row, intent_row, rounds_in, said, snapshot_row
from tests.support.fleets import fleet
from tests.support.pulsar import PULSAR
from tests.support.reports import bundle
from trimtab.cluster.operator import Cluster
from trimtab.ownership import State
from trimtab.plan import MOST_AT_ONCE, Plan
from trimtab.policies import Isolation
from trimtab.reasons import Rule
from trimtab.round.decide import decide
from trimtab.settings import Settings
from trimtab.state.round_state import RoundState
from trimtab.wire.intent import Intent, IntentKind
from trimtab.wire.rounds import RoundRecord
from trimtab.wire.rows import Row

LIBERAL = {"doubt__silent_brokers": 1.0, "doubt__lost_brokers": 1.0, "round__move_deadline": 600.0}


def names(number: int, namespace: str = "t/n") -> list[str]:
    return [bundle(i % 256, 256, f"{namespace}{i // 256}") for i in range(number)]


def batch(it: Cluster, now_ms: int, rows: Iterable[Row] = ()) -> list[RoundRecord]:
    """As the engine runs it: a timer that is due fires after the input."""
    out, _ = it.take(rows, now_ms)
    if 0 < it.memory.due_ms <= now_ms:
        out += it.wake(now_ms)[0]
    return rounds_in(out)


@pytest.mark.parametrize(
    "number",
    [
        pytest.param(MOST_AT_ONCE, marks=pytest.mark.slow),
        pytest.param(2 * MOST_AT_ONCE + 1),
        pytest.param(70_000, marks=pytest.mark.slow),
        pytest.param(120_000, marks=pytest.mark.slow),
    ],
)
def test_all_bundles_of_a_lost_broker_are_repaired_once_batch_after_batch(number: int) -> None:
    it = fleet({}, "abcd", **LIBERAL)
    lost = names(number)
    batch(it, 2000, (change_row(name, "a:1") for name in lost))
    held = batch(it, 3000, [said(IntentKind.BROKER_LOST, broker="a:1")])
    repaired = [repair.bundle for repair in held[0].repairs]
    now_ms = 3000
    while it.memory.repair_ms == now_ms + 1:
        now_ms += 1
        (record,) = batch(it, now_ms)
        assert len(record.repairs) <= MOST_AT_ONCE
        repaired += (repair.bundle for repair in record.repairs)
    assert repaired == sorted(lost)
    assert now_ms - 3000 == (number - 1) // MOST_AT_ONCE
    assert it.memory.repair_ms == now_ms + 600_000 - (now_ms - 3000)
    assert batch(it, now_ms + 10) == []


@pytest.mark.parametrize("now_ms", [2000, 62_000], ids=["between two rounds", "in a round"])
def test_what_waits_for_the_next_batch_does_not_lack_candidates(now_ms: int) -> None:
    it = fleet({}, "abcd", **LIBERAL)
    given_up = [change_row(name, None, 2, State.FREE) for name in names(MOST_AT_ONCE + 7)]

    (record,) = batch(it, now_ms, given_up)

    assert len(record.repairs) == MOST_AT_ONCE
    assert record.obstacles == {}
    assert it.memory.repair_ms == now_ms + 1


def test_what_no_broker_can_take_keeps_nothing_else_from_its_place() -> None:
    it = fleet({}, "abcd", **LIBERAL)
    policy = Isolation(namespaces=("t/a.*",), primary=("nobody",))
    demand = Intent(id="1", kind=IntentKind.ISOLATION, cluster="c", name="p", isolation=policy)
    bound, free = names(MOST_AT_ONCE + 1, "t/a"), names(5, "t/z")
    given_up = [change_row(name, None, 2, State.FREE) for name in (*bound, *free)]

    (record,) = batch(it, 2000, [intent_row(demand), *given_up])

    assert [repair.bundle for repair in record.repairs] == free
    assert record.obstacles == {Rule.NO_CANDIDATE: len(bound)}
    assert it.memory.repair_ms == 3000


def test_a_broker_is_emptied_of_so_many_at_once() -> None:
    more = -MOST_AT_ONCE % 256
    carried = dict.fromkeys(names(MOST_AT_ONCE + more), 1.0)
    it = fleet({}, "bcd", **LIBERAL)
    rows = [snapshot_row("a:1", carried, at_ms=1500)]
    batch(it, 2000, [*rows, *(change_row(name, "a:1") for name in carried)])

    (record,) = batch(it, 3000, [said(IntentKind.DRAIN, broker="a:1")])

    assert len(record.moves) == MOST_AT_ONCE
    assert record.refused == {Rule.BUDGET: more}
    assert it.memory.repair_ms == 4000


def decided(carried: Iterable[Bundle], **settings: object) -> Plan:
    """Of brokers of which one carries all of it."""
    view = cluster(a=Broker(0.3, list(carried)), b=Broker(0.3))
    view = replace(view, sizes=dict.fromkeys(view.bundles.namespaces, 1 << 15))
    chosen = {**PULSAR, **{name.replace("__", "."): value for name, value in settings.items()}}
    rng = np.random.default_rng(1)
    return decide(view, RoundState(), Settings.parse(chosen), 0, rng)[0]


def test_no_more_are_divided_in_one_round() -> None:
    large = [
        Bundle((2000.0, 0, 0, 0), name=name, topics=10)
        for name in names(MOST_AT_ONCE + 7, "t/large")
    ]
    plan = decided(
        large, split__max_bundles=1 << 16, split__max_rate=1000.0, split__max_per_round=0
    )
    assert len(plan.splits) == MOST_AT_ONCE


def test_no_more_are_merged_in_one_round() -> None:
    parts = [bundle(i, 1 << 15, "t/n") for i in range(2 * MOST_AT_ONCE + 8)]
    cold = [Bundle((1.0, 0, 0, 0), name=name, topics=1) for name in parts]
    plan = decided(cold, split__max_bundles=8, merge__max_per_round=0)
    assert len(plan.merges) == MOST_AT_ONCE
