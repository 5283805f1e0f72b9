"""What a client knows of places: by range and epoch, in bounded space."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.lookup.places import Place, Places
from trimtab.model import FULL_RANGE_END, Epoch, HashRange

EDGES = [0, 0x40000000, 0x80000000, 0xC0000000, FULL_RANGE_END]


def bundle(low: int, high: int, namespace: str = "t/ns") -> str:
    return f"{namespace}/{HashRange(low, high)}"


def place(name: str, counter: int, broker: str = "a:8080") -> Place:
    return Place(name, broker, Epoch(1, counter))


def note(places: Places, found: Place) -> bool:
    return places.note(found.bundle, found.epoch, found)


def test_a_place_holds_for_its_whole_range_and_no_further() -> None:
    places = Places(10)
    middle = place(bundle(100, 200), 1)
    assert note(places, middle)
    found = {where: places.find("t/ns", where) for where in (99, 100, 199, 200)}
    assert {where for where, known in found.items() if known} == {100, 199}
    assert places.find("t/other", 150) is None


def test_the_end_of_the_ring_is_in_its_last_range() -> None:
    places = Places(10)
    note(places, place(bundle(0x80000000, FULL_RANGE_END), 1))
    assert places.find("t/ns", FULL_RANGE_END) is not None


def test_the_least_recently_wanted_is_forgotten() -> None:
    places = Places(2)
    for low in (0, 10):
        note(places, place(bundle(low, low + 10), 1))
    places.find("t/ns", 0)
    note(places, place(bundle(20, 30), 1))
    assert [low for low in (0, 10, 20) if places.find("t/ns", low)] == [0, 20]


def test_halves_replace_the_whole_and_a_whole_its_halves() -> None:
    places = Places(10)
    whole, left, merged = bundle(0, 100), bundle(0, 50), bundle(0, 100)
    note(places, place(whole, 1))
    assert note(places, place(left, 2))
    assert places.find("t/ns", 70) is None
    assert not note(places, place(whole, 1))
    assert note(places, place(merged, 3))
    assert len(places) == 1


@pytest.mark.parametrize(
    ("counter", "news"),
    [pytest.param(6, False, id="older"), pytest.param(7, True, id="as new")],
)
def test_what_was_found_wrong_comes_back_with_no_older_epoch(counter: int, news: bool) -> None:
    places = Places(10)
    name = bundle(0, 100)
    places.note(name, Epoch(1, 7), None)
    assert note(places, place(name, counter)) is news


spans = (
    st.tuples(st.sampled_from(EDGES), st.sampled_from(EDGES))
    .map(sorted)
    .filter(lambda ends: ends[0] < ends[1])
)
news = st.tuples(spans, st.integers(0, 5), st.sampled_from(["a:8080", "b:8080", None]))


@given(st.lists(news, max_size=30), st.sampled_from([*EDGES, 1, 0x7FFFFFFF]))
def test_the_newest_of_overlapping_ranges_is_known_as_in_a_plain_list(
    told: list[tuple[list[int], int, str | None]], where: int
) -> None:
    places = Places(1000)
    plain: list[tuple[int, int, Epoch, str | None]] = []
    for (low, high), counter, broker in told:
        epoch = Epoch(1, counter)
        name = bundle(low, high)
        touched = [row for row in plain if row[0] < high and low < row[1]]
        is_news = all(row[2] < epoch or (row[2] == epoch and row[3] is None) for row in touched)
        if is_news:
            plain = [row for row in plain if row not in touched] + [(low, high, epoch, broker)]
        assert places.note(name, epoch, place(name, counter, broker) if broker else None) is is_news

    holding = [row for row in plain if row[0] <= where < row[1] or where == row[1] == EDGES[-1]]
    known = places.find("t/ns", where)
    assert len(places) == len(plain)
    if known is None:
        assert holding == []
    else:
        broker = known.place.broker if known.place else None
        assert holding == [(*known.span, known.since, broker)]
