"""Values in pages: a mapping like any other, that reads and writes few pages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.state import packed_pages
from trimtab.state.packed_pages import PackedPages

PAGE = 40
INDEX = "snapshots"
SIZE = 10
"""Four snapshots fill a page."""


class Kept:
    """Pages that count what is done with all of them but the index."""

    def __init__(self) -> None:
        self.pages = Counted()

    def load(self) -> PackedPages:
        self.pages.did.clear()
        return PackedPages(self.pages)

    def write(self, names: Iterable[str], payload: bytes = bytes(SIZE)) -> Counter[str]:
        """Store a snapshot by each name; what it took."""
        kept = self.load()
        kept.update(dict.fromkeys(names, payload))
        kept.save()
        return self.pages.did.copy()


class Counted(dict[str, bytes]):
    def __init__(self) -> None:
        super().__init__()
        self.did = Counter[str]()

    def __getitem__(self, key: str) -> bytes:
        self.did["read"] += key != INDEX
        return super().__getitem__(key)

    def __setitem__(self, key: str, value: bytes) -> None:
        self.did["written"] += key != INDEX
        super().__setitem__(key, value)

    def __delitem__(self, key: str) -> None:
        self.did["deleted"] += 1
        super().__delitem__(key)


@pytest.fixture(autouse=True)
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed_pages, "PAGE", PAGE)


def test_a_batch_writes_by_the_page_and_reads_nothing() -> None:
    kept = Kept()
    assert kept.write("abcdefgh") == {"written": 2}
    assert dict(kept.load()) == dict.fromkeys("abcdefgh", bytes(SIZE))


def test_brokers_that_reported_together_are_read_with_their_pages_alone() -> None:
    kept = Kept()
    kept.write("abcd")
    kept.write("efgh")
    found = kept.load()
    assert [found[name] for name in "efgh"] == [bytes(SIZE)] * 4
    assert kept.pages.did == {"read": 1}


def test_what_is_replaced_whole_leaves_its_page_to_what_comes() -> None:
    kept = Kept()
    kept.write("abcd")
    assert kept.write("abcd", b"new") == {"written": 1}
    assert dict(kept.load()) == dict.fromkeys("abcd", b"new")


def test_a_page_of_which_a_quarter_counts_moves_along() -> None:
    kept = Kept()
    kept.write("abcd")
    assert kept.write("abx", bytes(PAGE)) == {"written": 3}
    # Now only d is left of the first page.
    assert kept.write("c", bytes(PAGE)) == {"read": 1, "written": 2}
    assert kept.load()["d"] == bytes(SIZE)


def test_small_pages_are_put_together() -> None:
    kept = Kept()
    assert kept.write("a") == {"written": 1}
    assert kept.write("b") == {"read": 1, "written": 1}
    assert len(kept.pages) == 1 + 1
    # Twice as large as what comes: left alone.
    assert kept.write("c") == {"written": 1}
    assert kept.write("d") == {"read": 2, "written": 1, "deleted": 1}


def test_a_snapshot_that_is_larger_than_a_page_has_one_to_itself() -> None:
    kept = Kept()
    kept.write("a", bytes(3 * PAGE))
    kept.write("bcd")
    assert kept.pages.keys() == {INDEX, "snapshots/0", "snapshots/1"}
    assert kept.load()["a"] == bytes(3 * PAGE)


def test_nothing_is_written_where_nothing_changed() -> None:
    kept = Kept()
    kept.write("")
    assert not kept.pages
    kept.write("ab")
    before = dict(kept.pages)
    assert kept.write("").total() == 0
    assert kept.pages == before


def test_what_is_deleted_is_gone_and_so_is_its_page() -> None:
    kept = Kept()
    kept.write("ab")
    found = kept.load()
    assert found.pop("a") == bytes(SIZE)
    del found["b"]
    found.save()
    assert not dict(kept.load())
    assert kept.pages.keys() == {INDEX}
    with pytest.raises(KeyError):
        del kept.load()["a"]
    with pytest.raises(KeyError):
        kept.load()["a"]


def test_the_index_is_read_when_a_value_is_asked_for() -> None:
    kept = Kept()
    kept.write("a")
    del kept.pages[INDEX]
    found = kept.load()
    found.save()
    assert INDEX not in kept.pages
    assert "a" not in found


def test_values_that_were_kept_by_name_move_once_one_is_asked_for() -> None:
    kept, before = Kept(), {"a": b"1", "b": b"2"}
    PackedPages(kept.pages, INDEX, before).save()
    assert before
    found = PackedPages(kept.pages, INDEX, before)
    found["b"] = b"3"
    assert dict(found) == {"a": b"1", "b": b"3"}
    found.save()
    assert not before
    assert dict(kept.load()) == {"a": b"1", "b": b"3"}


def test_what_is_in_pages_is_newer_than_what_was_kept_by_name() -> None:
    kept, before = Kept(), {"a": b"1"}
    kept.write("b", b"2")
    found = PackedPages(kept.pages, INDEX, before)
    assert dict(found) == {"b": b"2"}
    found["c"] = b"3"
    found.save()
    assert (dict(kept.load()), before) == ({"b": b"2", "c": b"3"}, {"a": b"1"})


NAMES = st.sampled_from("abcdefghijkl")
PAYLOADS = st.binary(max_size=PAGE + 5)
BATCHES = st.lists(
    st.tuples(st.dictionaries(NAMES, PAYLOADS), st.sets(NAMES), st.sets(NAMES)), max_size=30
)


@given(BATCHES)
def test_it_is_a_mapping_and_its_pages_are_few_and_full(
    batches: list[tuple[dict[str, bytes], set[str], set[str]]],
) -> None:
    kept, true = Kept(), dict[str, bytes]()
    for put, removed, asked in batches:
        found = kept.load()
        for name in asked:
            assert found.get(name) == true.get(name)
        found.update(put)
        true |= put
        for name in removed & true.keys():
            del found[name], true[name]
        assert dict(found) == true
        found.save()
        # It goes on after it was saved, and so does what the next batch loads.
        assert dict(found) == dict(kept.load()) == true
        assert len(found) == len(kept.load()) == len(true)
        listed = kept.load()._listed
        assert listed.keys() == kept.pages.keys() - {INDEX}
        for page in listed.values():
            assert len(page.sizes) * 4 > page.written
            assert page.size <= PAGE or len(page.sizes) == 1
