"""A green that sends a byte now and then is asked no longer than one that sends none."""

from __future__ import annotations

import pytest

from agent.migration.port import CannotMigrate
from control.migration.green_admin import TooSlow, asking
from simulation.traffic.green import Green
from sinks.deadline import within
from sinks.green_access import NO_ACCESS
from tests.support.trickle import trickle
from trimtab.migration.migration import Target


def test_what_a_call_returns_or_raises_is_handed_on() -> None:
    assert within(20.0, lambda: 1, list) == 1
    with pytest.raises(ZeroDivisionError):
        within(20.0, lambda: 1 // 0, list)


def test_a_step_ends_in_time_however_slowly_green_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """The agent's thread hung in it, and broker after broker lost its lease."""
    monkeypatch.setattr("simulation.traffic.green_line.ANSWER_S", 0.2)
    with trickle() as slow:
        green = Green(Target(serviceUrl=slow.url))
        for _ in range(2):
            with pytest.raises(
                CannotMigrate, match=r"(no answer within|takes more than|timed out)"
            ):
                green.create("persistent://t/ns/one", ["s"])
        assert slow.heard_out == []


def test_a_plan_ends_in_time_however_slowly_green_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """And asks it nothing more: each question would take as long."""
    monkeypatch.setattr("control.migration.green_admin.TIMEOUT_S", 0.2)
    with trickle() as slow:
        asked = asking(Target(serviceUrl=slow.url), NO_ACCESS)
        with pytest.raises(TooSlow, match="does not answer: "):
            asked(slow.url, "clusters")
        monkeypatch.setattr("control.migration.green_admin.TIMEOUT_S", 60.0)
        with pytest.raises(TooSlow, match=r"/clusters does not answer"):
            asked(slow.url, "tenants/t")
        assert slow.heard_out == []
