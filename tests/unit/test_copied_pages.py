"""Pages with copies: a copy is read only if it is what was written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.state import packed_pages
from trimtab.state.copied_pages import CopiedPages
from trimtab.state.packed_pages import PackedPages


class Unread(dict[str, bytes]):
    """A state that is not to be read."""

    def __getitem__(self, name: str) -> bytes:
        raise AssertionError(f"{name} is read")


def test_a_page_is_read_from_its_copy() -> None:
    pages, copies = Unread(), dict[str, bytes]()
    digest = CopiedPages(pages, copies).write("page", b"content")
    assert CopiedPages(pages, copies).read("page", digest) == b"content"


@pytest.mark.parametrize("copies", [{}, {"page": b"another attempt's"}, {"page": b"conten"}])
def test_a_copy_that_is_not_what_was_written_is_ignored(copies: dict[str, bytes]) -> None:
    pages = dict[str, bytes]()
    digest = CopiedPages(pages).write("page", b"content")
    assert CopiedPages(pages, copies).read("page", digest) == b"content"


def test_a_page_of_an_earlier_version_is_read_from_the_state() -> None:
    assert CopiedPages({"page": b"content"}, {"page": b"other"}).read("page", b"") == b"content"


def test_a_page_that_is_as_before_is_not_written_again() -> None:
    pages = dict[str, bytes]()
    digest = CopiedPages(pages).write("page", b"content")
    pages.clear()
    assert CopiedPages(pages).write("page", b"content", digest) == digest
    assert not pages
    CopiedPages(pages).write("page", b"other", digest)
    assert pages == {"page": b"other"}


def test_a_page_is_deleted_with_its_copy() -> None:
    pages, copies = dict[str, bytes](), dict[str, bytes]()
    CopiedPages(pages, copies).write("page", b"content")
    CopiedPages(pages, copies).delete("page")
    assert not pages
    assert not copies
    with pytest.raises(KeyError):
        CopiedPages(pages, copies).delete("page")


NAMES = st.sampled_from("abcdefgh")
BATCHES = st.lists(
    st.tuples(
        st.dictionaries(NAMES, st.binary(max_size=50)),
        st.sets(NAMES),
        st.booleans(),
        st.dictionaries(st.integers(0, 3), st.binary(max_size=20)),
        st.sets(st.integers(0, 3)),
    ),
    max_size=20,
)


@given(BATCHES)
def test_whatever_becomes_of_copies_nothing_is_read_that_was_not_stored(
    batches: list[tuple[dict[str, bytes], set[str], bool, dict[int, bytes], set[int]]],
) -> None:
    """A batch may fail after it wrote copies; copies may be damaged or lost."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packed_pages, "PAGE", 40)
        pages, copies, true = dict[str, bytes](), dict[str, bytes](), dict[str, bytes]()
        for put, removed, fails, damaged, lost in batches:
            before = dict(pages), dict(true)
            kept = PackedPages(pages, copies=copies)
            assert dict(kept) == true
            kept.update(put)
            true |= put
            for name in removed & true.keys():
                del kept[name], true[name]
            kept.save()
            if fails:
                pages, true = before
            copies |= {f"snapshots/{number}": page for number, page in damaged.items()}
            for number in lost:
                copies.pop(f"snapshots/{number}", None)
        assert dict(PackedPages(pages, copies=copies)) == true
