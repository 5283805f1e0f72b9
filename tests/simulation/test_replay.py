"""A replay on plain dicts: what batches do to the state, and what a repetition may say."""

from __future__ import annotations

import msgspec
import pytest

from simulation.replay.batches import Contradiction, Replay, distinct, rounds_of
from sources.records import Record
from tests.support.reports import bundle
from trimtab.intake.snapshot import IntakeSettings
from trimtab.model import Epoch
from trimtab.ownership import Event, State
from trimtab.settings import Settings
from trimtab.wire import keys
from trimtab.wire.intent import Intent, IntentKind
from trimtab.wire.ownership import Change
from trimtab.wire.ownership import Record as Owned
from trimtab.wire.reports.load_report import BundleStats, LocalBrokerData, Resource, encode
from trimtab.wire.rounds import BatchRecord

OBSERVE = Settings().changed({"round.observe_only": True, "round.interval": 5.0})


def report(offset: int, broker: str = "b:1", cpu: float = 50.0) -> Record:
    stats = {bundle(0): BundleStats(msg_rate_in=1.0, topics=1)}
    value = encode(LocalBrokerData(cpu=Resource(cpu, 100.0), last_stats=stats))
    key = f"c/{broker}".encode()
    return Record(keys.LOAD_REPORTS, 0, offset, 1000 * offset, key, value)


def intent(offset: int, at: int, interval: float) -> Record:
    value = b'{"id":"%d","kind":"settings","cluster":"c","settings":{"round.interval":%f}}' % (
        offset,
        interval,
    )
    return Record(keys.CONTROL, 0, offset, at, b"c", value)


def said(offset: int, at: int, kind: IntentKind, broker: str) -> Record:
    value = msgspec.json.encode(Intent(id=str(offset), kind=kind, cluster="c", broker=broker))
    return Record(keys.CONTROL, 0, offset, at, b"c", value)


def owned(offset: int, name: str, broker: str) -> Record:
    stands = Owned(state=State.OWNED, epoch=Epoch(1, 1), owner=broker)
    change = Change(cluster="c", bundle=name, event=Event.CLAIM, record=stands)
    return Record(keys.OWNERSHIP, 0, offset, 0, f"c/{name}".encode(), msgspec.json.encode(change))


def batch(number: int, generation: int = 1, at: int = 0) -> BatchRecord:
    return BatchRecord(query="q", batch=number, generation=generation, at=at, offsets={}, rounds=())


def test_a_round_is_held_in_the_batch_where_its_timer_is_due() -> None:
    replay = Replay(IntakeSettings(), OBSERVE)
    held = [
        list(rounds_of(replay.run(at, [report(i)])))
        for i, at in enumerate((10_000, 14_999, 15_000, 19_999, 21_000))
    ]
    assert held == [[], [], ["c"], [], ["c"]]


def test_the_order_of_a_batchs_records_changes_nothing() -> None:
    records = [report(i, f"b:{i % 2}", 10.0 * i) for i in range(6)]
    forwards, backwards = (Replay(IntakeSettings(), OBSERVE) for _ in range(2))
    forwards.run(10_000, records)
    backwards.run(10_000, records[::-1])
    assert forwards.fingerprint("c") == backwards.fingerprint("c")
    assert forwards.stored == backwards.stored


def test_intents_of_one_millisecond_count_in_the_order_of_their_offsets() -> None:
    """As text, offset 10 stood before offset 9."""
    replay = Replay(IntakeSettings(), OBSERVE)
    replay.run(10_000, [intent(10, 7, 20.0), intent(9, 7, 30.0)])
    assert replay.clusters["c"].settings.round.interval == 20.0


def lost_broker() -> list[tuple[int, list[Record]]]:
    """Broker a:1 is lost, back, and lost again, while a round is due now and then."""
    names = [bundle(i, 64) for i in range(64)]
    reports = [report(i, f"{broker}:1", 10.0 * i) for i, broker in enumerate("abcd")]
    lost, back = IntentKind.BROKER_LOST, IntentKind.BROKER_JOINED
    return [
        (10_000, [*reports, *(owned(i, name, "a:1") for i, name in enumerate(names))]),
        (11_000, [said(0, 11_000, lost, "a:1")]),
        (13_000, [said(1, 13_000, back, "a:1"), report(4)]),
        (14_000, [said(2, 14_000, lost, "a:1"), said(3, 14_000, IntentKind.DRAIN, "b:1")]),
        *((14_000 + 1000 * second, [report(4 + second, "c:1")]) for second in range(1, 60)),
    ]


def test_a_lost_broker_is_replayed_byte_for_byte() -> None:
    decided = []
    for step in (1, -1):
        replay = Replay(IntakeSettings(), Settings().changed({"round.interval": 5.0}))
        out = [list(rounds_of(replay.run(at, r[::step])).values()) for at, r in lost_broker()]
        decided.append((msgspec.json.encode(out), replay.fingerprint("c")))
        assert [len(held) for held in out[:4]] == [0, 1, 1, 1]
        assert {len(held) for held in out} == {0, 1}
        assert len(out[1][0].repairs) == 64
    assert decided[0] == decided[1]


def test_a_timer_that_outlives_its_interval_still_holds_a_round() -> None:
    """A state that changed with no row for the sinks could not be replayed."""
    replay = Replay(IntakeSettings(), OBSERVE)
    replay.run(10_000, [report(0)])
    replay.run(11_000, [intent(0, 11_000, 0.0)])
    assert list(rounds_of(replay.run(15_000, []))) == ["c"]


def test_a_batch_that_was_recorded_twice_counts_once() -> None:
    recorded = [batch(1), batch(0), batch(1, generation=2)]
    assert [each.batch for each in distinct(recorded)] == [0, 1]


def test_a_repetition_that_says_something_else_is_a_contradiction() -> None:
    with pytest.raises(Contradiction, match="batch 1 of query q"):
        list(distinct([batch(1, at=1), batch(1, at=2)]))
