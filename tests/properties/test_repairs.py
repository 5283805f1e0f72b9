"""What every repair keeps to, whatever the records, the brokers that are gone and the strategy."""

from __future__ import annotations

from random import Random

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from tests.support.clusters_by_rows import cluster, record_row, rounds_in, said, snapshot_row
from tests.support.random_clusters import PAIRS
from tests.support.reports import bundle
from trimtab.cluster.operator import Cluster
from trimtab.model import Epoch
from trimtab.ownership import TRANSITIONS, WITHOUT_OWNER, Event, State
from trimtab.wire.intent import IntentKind
from trimtab.wire.ownership import Record
from trimtab.wire.rounds import RoundRecord
from trimtab.wire.rows import Row, Tag

BROKERS = [f"{letter}:1" for letter in "abcdef"]
BUNDLES = [bundle(i, 16) for i in range(16)]
OWNED = frozenset(State) - WITHOUT_OWNER

brokers = st.sampled_from(BROKERS)
some = st.sets(brokers, max_size=3)


@st.composite
def batches(draw: st.DrawFn) -> list[Row]:
    """What brokers report, who owns what, and who is gone, drained or back."""
    gone, draining, back = draw(some), draw(some), draw(some)
    rows = [said(IntentKind.BROKER_LOST, broker=broker) for broker in sorted(gone)]
    rows += [said(IntentKind.DRAIN, broker=broker) for broker in sorted(draining)]
    rows += [said(IntentKind.BROKER_JOINED, broker=broker) for broker in sorted(gone & back)]
    reported: dict[str, dict[str, float]] = {broker: {} for broker in BROKERS}
    for counter, name in enumerate(BUNDLES, 1):
        state = draw(st.sampled_from(State))
        owner = draw(brokers) if state in OWNED else None
        aim = draw(st.none() | brokers) if state is State.RELEASING else None
        if draw(st.booleans()):
            reported[owner or draw(brokers)][name] = draw(st.sampled_from([0.0, 1.0, 100.0]))
        epoch = Epoch(1, counter)
        stands = Record(state=state, epoch=epoch, owner=owner, destination=aim)
        rows.append(record_row(name, stands))
        if state is State.QUARANTINED and draw(st.booleans()):
            rows.append(said(IntentKind.READMIT, bundle=name))
    usages = {broker: draw(st.sampled_from([10.0, 50.0, 90.0])) for broker in BROKERS}
    present = [broker for broker in BROKERS if draw(st.integers(0, 5))]
    return rows + [snapshot_row(b, reported[b], cpu=usages[b]) for b in present]


def fresh(pair: tuple[str, str], most: int) -> Cluster:
    """A cluster that doubts nothing: what is repaired is wanted here, not whether."""
    shedding, placement = pair
    return cluster(
        {
            "round.shedding": shedding,
            "round.placement": placement,
            "round.max_moves": most,
            "round.interval": 60.0,
            "doubt.silent_brokers": 1.0,
            "doubt.lost_brokers": 1.0,
        }
    )


def rounds(it: Cluster, rows: list[Row]) -> list[RoundRecord]:
    """A round at once, and one after every deadline; intents come when the rest is known."""
    it.receive([row for row in rows if row.tag != Tag.INTENT], 900)
    it.receive([row for row in rows if row.tag == Tag.INTENT], 1000)
    return [*rounds_in([it.hold_round(1000)]), *rounds_in([it.hold_round(31_000)])]


def record_of(it: Cluster, name: str) -> Record:
    return it.records("t/ns")[name]


@given(batches(), st.sampled_from(PAIRS), st.sampled_from([0, 2]))
def test_every_change_is_legal_and_leads_to_a_broker_that_may_have_it(
    rows: list[Row], pair: tuple[str, str], most: int
) -> None:
    it = fresh(pair, most)
    for record in rounds(it, rows):
        away = {*record.gone, *record.draining, *record.held_back}
        for repair in record.repairs:
            known = record_of(it, repair.bundle)
            assert Event(repair.event) in TRANSITIONS[known.state]
            assert repair.epoch == tuple(known.epoch)
            match repair.event:
                case Event.ASSIGN:
                    assert repair.broker not in away
                    assert repair.broker in record.usage
                case Event.KEEP:
                    assert repair.broker == known.owner
                case _:
                    assert repair.broker is None
            if known.state is State.OWNED:
                assert known.owner in record.gone
        for move in record.moves:
            assert move.destination not in away
            assert move.source not in record.gone
        changed = [
            each.bundle for part in (record.moves, record.splits, record.repairs) for each in part
        ]
        changed += [name for each in record.merges for name in (each.bundle, each.neighbour)]
        assert len(set(changed)) == len(changed)


@given(batches(), st.sampled_from(PAIRS))
def test_what_no_broker_serves_is_placed_wherever_a_broker_can_have_it(
    rows: list[Row], pair: tuple[str, str]
) -> None:
    it = fresh(pair, 0)
    record = rounds(it, rows)[0]
    away = {*record.gone, *record.draining, *record.held_back}
    repaired = {repair.bundle for repair in record.repairs}
    for name in BUNDLES:
        known = record_of(it, name)
        orphan = known.state is State.FREE or known.owner in record.gone
        if known.state is not State.QUARANTINED:
            assert (name in repaired) == bool(orphan and record.usage.keys() - away)


@given(batches(), st.sampled_from(PAIRS), st.randoms(use_true_random=False))
def test_the_order_of_a_batch_changes_nothing(
    rows: list[Row], pair: tuple[str, str], random: Random
) -> None:
    """Intents of one batch have an order of their own: their place in Kafka."""
    placed = [
        row._replace(subject=f"trimtab.control/0/{i}") if row.tag == Tag.INTENT else row
        for i, row in enumerate(rows)
    ]
    shuffled = random.sample(placed, len(placed))
    first, second = (rounds(fresh(pair, 0), each) for each in (placed, shuffled))
    assert msgspec.json.encode(first) == msgspec.json.encode(second)
