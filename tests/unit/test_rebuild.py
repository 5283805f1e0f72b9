"""After a loss the record with the highest epoch holds, whoever has it."""

from __future__ import annotations

from itertools import permutations

from trimtab.model import Epoch
from trimtab.ownership import State
from trimtab.rebuild import rebuilt
from trimtab.wire.ownership import Record

X, Y = "t/n/0x00000000_0x80000000", "t/n/0x80000000_0xffffffff"


def record(counter: int, owner: str = "a", generation: int = 1) -> Record:
    return Record(state=State.OWNED, epoch=Epoch(generation, counter), owner=owner)


def test_nothing_is_lacking_where_the_store_is_ahead() -> None:
    done = rebuilt({X: record(5)}, {X: record(4)}, [{X: record(5)}])
    assert (done.records, done.unjournalled) == ({}, frozenset())


def test_an_empty_store_gets_the_journal_back() -> None:
    done = rebuilt({}, {X: record(4), Y: record(2)}, [])
    assert (done.records, done.unjournalled) == ({X: record(4), Y: record(2)}, frozenset())


def test_a_broker_may_have_seen_more_than_the_journal() -> None:
    done = rebuilt({X: record(3)}, {X: record(4)}, [{X: record(6, "b")}, {X: record(5)}])
    assert (done.records, done.unjournalled) == ({X: record(6, "b")}, frozenset({X}))


def test_a_higher_generation_outweighs_any_counter() -> None:
    later = record(2, generation=2)
    assert rebuilt({X: record(9)}, {X: later}, []).records == {X: later}


def test_the_order_in_which_brokers_speak_does_not_matter() -> None:
    said = [{X: record(1)}, {X: record(3, "b"), Y: record(1)}, {Y: record(2, "c")}]
    results = [rebuilt({}, {}, order) for order in permutations(said)]
    assert results == [results[0]] * 6
    assert results[0].records == {X: record(3, "b"), Y: record(2, "c")}
