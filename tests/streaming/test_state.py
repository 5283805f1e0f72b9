"""What the job keeps in Spark's state comes back as it was; another version's is refused."""

from __future__ import annotations

from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.streaming.stateful_processor import MapState

from streaming.query.state import SCHEMA, ForeignCheckpoint, StoredMapping


class Cells(dict[tuple[str], tuple[int, str]]):
    """A MapState with the columns of every mapping."""

    def getValue(self, key: tuple[str]) -> Any:
        return self.get(key)

    def containsKey(self, key: tuple[str]) -> bool:
        return key in self

    def updateValue(self, key: tuple[str], value: tuple[int, str]) -> None:
        self[key] = value

    def removeKey(self, key: tuple[str]) -> None:
        del self[key]

    def iterator(self) -> Any:
        return iter(self.items())


def stored(cells: Cells) -> StoredMapping:
    return StoredMapping(cast(MapState, cells))


@given(st.dictionaries(st.text(), st.binary()))
def test_it_is_a_mapping_of_bytes(payloads: dict[str, bytes]) -> None:
    cells = Cells()
    stored(cells).update(payloads)
    found = stored(cells)
    assert dict(found) == dict(found.items()) == payloads
    assert {name: found[name] for name in payloads} == payloads
    assert len(found) == len(payloads)


def test_the_payload_is_text_that_is_a_third_longer() -> None:
    cells = Cells()
    stored(cells)["a"] = bytes(range(256)) * 3
    schema, text = cells["a",]
    assert schema == SCHEMA
    assert text.isascii()
    assert len(text) == 1024


def test_what_is_deleted_is_gone() -> None:
    cells = Cells()
    found = stored(cells)
    found["a"] = b"1"
    del found["a"]
    assert "a" not in found
    with pytest.raises(KeyError):
        del found["a"]


def test_what_the_last_version_kept_is_read_on() -> None:
    assert stored(Cells({("a",): (4, "MQ==")}))["a"] == b"1"


def test_another_version_is_refused() -> None:
    found = stored(Cells({("a",): (99, "")}))
    for read in (lambda: found["a"], found.items):
        with pytest.raises(ForeignCheckpoint, match=f"state of schema 99, this job of {SCHEMA}"):
            read()
