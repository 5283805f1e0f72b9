"""Ports for servers that start later than they are given."""

from __future__ import annotations

import random

import pytest

from deploy import ports


def test_no_port_is_given_twice_though_nothing_listens_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    """The listeners of one server must differ, also where the draw repeats itself."""
    monkeypatch.setattr(random, "sample", lambda *_: [20_001, 20_002])
    monkeypatch.setattr(ports, "_given", set())
    monkeypatch.setattr(ports, "is_free", lambda _: True)
    assert [ports.free_port(), ports.free_port()] == [20_001, 20_002]
    with pytest.raises(OSError, match="none of 200 ports"):
        ports.free_port()
