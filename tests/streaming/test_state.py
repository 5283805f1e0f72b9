"""State of another version is refused before it is read."""

from __future__ import annotations

import pytest

from streaming.query.state import ForeignCheckpoint, payload_of


def test_the_payload_of_this_version_is_read() -> None:
    assert payload_of(None, (1,), "snapshots") == b""
    assert payload_of((1, bytearray(b"known")), (1, 2), "snapshots") == b"known"


def test_another_version_is_refused() -> None:
    with pytest.raises(ForeignCheckpoint, match="holds snapshots of schema 2, this job of 1"):
        payload_of((2, b"unknown"), (1,), "snapshots")
