"""A cluster's memory in state: only what changed is written, and what rounds have learnt is left
alone by batches without a round."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streaming.query import memory_store
from streaming.query.memory_store import MemoryStore
from trimtab.shedding.avg import AvgHistory
from trimtab.state.memory import Learnt, Memory, put_together, set_apart
from trimtab.state.round_state import Histories
from trimtab.wire.columns import pack, pack_small

PAGE = 64


class Kept:
    """The pages of a state, and what was done with them."""

    def __init__(self) -> None:
        self.pages: dict[str, bytes] = {}

    def store(self) -> tuple[MemoryStore, Counted]:
        pages = Counted(self.pages)
        return MemoryStore(pages), pages


class Counted(dict[str, bytes]):
    """A mapping that passes everything on, and counts it."""

    def __init__(self, pages: dict[str, bytes]) -> None:
        super().__init__(pages)
        self.pages = pages
        self.touched = Counter[str]()

    def __getitem__(self, key: str) -> bytes:
        self.touched[f"read {key}"] += 1
        return super().__getitem__(key)

    def __setitem__(self, key: str, value: bytes) -> None:
        self.touched[f"write {key}"] += 1
        self.pages[key] = value
        super().__setitem__(key, value)

    def __delitem__(self, key: str) -> None:
        self.touched[f"delete {key}"] += 1
        del self.pages[key]
        super().__delitem__(key)


@pytest.fixture(autouse=True)
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_store, "PAGE", PAGE)


def memory(brokers: int, learnt: int = 0, at: int = 1) -> Memory:
    appended = {f"broker-{number:03}": at for number in range(brokers)}
    histories = Histories(own={"mine": bytes(learnt)})
    return put_together(Memory(appended=appended), Learnt(histories))


def save(store: MemoryStore, it: Memory) -> None:
    """Save as after a round."""
    rest, learnt = set_apart(it)
    store.save(rest, pack(learnt))


def whole(state: Kept) -> Memory:
    store, _ = state.store()
    found, apart = store.load()
    return put_together(found, store.recall()) if apart else found


def test_nothing_stored_is_an_empty_memory() -> None:
    assert MemoryStore({}).load() == (Memory(), False)


def test_before_the_first_round_nothing_is_learnt() -> None:
    state = Kept()
    store, _ = state.store()
    store.load()
    rest, _ = set_apart(memory(2))
    store.save(rest, None)
    assert whole(state) == rest


def test_a_batch_without_a_round_leaves_what_rounds_have_learnt() -> None:
    state = Kept()
    store, _ = state.store()
    store.load()
    save(store, memory(1, learnt=500))
    store, pages = state.store()
    found, apart = store.load()
    assert apart
    assert found.round.histories == Histories()
    store.save(replace(found, paused=True), None)
    assert not [each for each in pages.touched if "learnt" in each]
    assert whole(state) == replace(memory(1, learnt=500), paused=True)


def test_only_the_pages_that_changed_are_written() -> None:
    state = Kept()
    store, _ = state.store()
    store.load()
    save(store, memory(40))
    store, pages = state.store()
    found, _ = store.load()
    store.save(replace(found, appended=found.appended | {"broker-020": 2}), None)
    assert len([each for each in pages.touched if "write memory/" in each]) == 1
    assert whole(state).appended["broker-020"] == 2


steps = st.tuples(st.integers(0, 30), st.integers(0, 300), st.integers(0, 3), st.booleans())


@settings(max_examples=60, deadline=None)
@given(st.lists(steps, max_size=6))
def test_what_is_saved_is_loaded_and_nothing_else_stays(
    saved: list[tuple[int, int, int, bool]],
) -> None:
    state, expected = Kept(), Memory()
    for brokers, learnt, at, holds_round in saved:
        store, _ = state.store()
        _, apart = store.load()
        new = memory(brokers, learnt, at)
        if apart and not holds_round:
            rest, _ = set_apart(new)
            store.save(rest, None)
            expected = put_together(rest, set_apart(expected)[1])
        else:
            if apart:
                store.recall()
            save(store, new)
            expected = new
        assert whole(state) == expected
        bare, of_rounds = set_apart(expected)
        held = -(-(len(pack(bare)) - PAGE) // PAGE), -(-len(pack_small(of_rounds)) // PAGE)
        pages = {"memory", *(f"memory/{number}" for number in range(held[0]))}
        assert state.pages.keys() == pages | {f"learnt/{number}" for number in range(held[1])}


def test_apart_and_together_again_is_the_same() -> None:
    some = replace(memory(3, 10), paused=True)
    some = replace(some, round=replace(some.round, number=4))
    some = put_together(some, Learnt(replace(some.round.histories, avg=AvgHistory())))
    rest, learnt = set_apart(some)
    assert (rest.round.number, rest.shadow) == (4, None)
    assert put_together(rest, learnt) == some
