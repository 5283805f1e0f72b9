"""A shedder is one file and one line: the one of CONTRIBUTING.md, as it stands there."""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from textwrap import dedent

import numpy as np
import pytest

from tests.support.clusters import Broker, cluster, throughputs
from tests.support.scenes import scene_of
from trimtab.cluster.job_settings import from_record, to_record
from trimtab.explaining.telling import explain
from trimtab.intake.snapshot import IntakeSettings
from trimtab.round.decide import decide
from trimtab.settings import Settings, catalogue
from trimtab.settings.setting import InvalidSettings
from trimtab.shedding import SHEDDERS, STRATEGIES, with_own
from trimtab.shedding.strategy import Strategy
from trimtab.state.memory import Memory
from trimtab.state.round_state import RoundState
from trimtab.view import View
from trimtab.wire.columns import pack, unpack

DOCUMENT = Path(__file__).parents[2] / "CONTRIBUTING.md"
CHOSEN = {"round.shedding": "hottest", "round.placement": "round-robin"}


@pytest.fixture
def defaults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """With the strategy registered."""
    strategy = strategy_of(tmp_path / "hottest.py", monkeypatch)
    monkeypatch.setitem(dict_of(STRATEGIES), "hottest", strategy)
    settings = with_own(Settings(), STRATEGIES)
    monkeypatch.setattr("trimtab.cluster.job_settings.DEFAULTS", settings)
    return settings


def strategy_of(file: Path, monkeypatch: pytest.MonkeyPatch) -> Strategy:
    _, _, block = DOCUMENT.read_text().partition("   ```python\n")
    file.write_text(dedent(block.partition("   ```\n")[0]))
    spec = spec_from_file_location("hottest", file)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "hottest", module)
    spec.loader.exec_module(module)
    found = module.STRATEGY
    assert isinstance(found, Strategy)
    return found


def dict_of(table: object) -> dict[str, Strategy]:
    assert isinstance(table, dict)
    return table


def hot_and_cold() -> View:
    return cluster(a=Broker(0.9, throughputs(1e6, 3e6, 2e6)), b=Broker(0.1, throughputs(1e6)))


def rounds(settings: Settings, number: int) -> list[list[str]]:
    """What moves in each of some rounds, with the memory packed in between."""
    memory, moved = Memory(), []
    view = hot_and_cold()
    for at in range(number):
        state = unpack(pack(memory), Memory).round
        plan, state = decide(view, state, settings, at, np.random.default_rng(1))
        moved.append([f"{move.bundle} {move.reason}" for move in plan.moves])
        memory = Memory(round=state)
    return moved


def test_it_decides_and_its_history_is_remembered_with_the_rest(defaults: Settings) -> None:
    largest = "t/a/0x00000001_0x00000002 hottest"
    assert rounds(defaults.changed(CHOSEN), 2) == [[], [largest]]
    assert rounds(defaults.changed({**CHOSEN, "hottest.hits": 1}), 1) == [[largest]]
    assert rounds(defaults.changed({**CHOSEN, "hottest.above": 0.9}), 2) == [[], []]


def test_its_settings_are_checked_listed_and_recorded_as_all_others(defaults: Settings) -> None:
    with pytest.raises(InvalidSettings) as refused:
        defaults.changed({"hottest.above": 2.0, "hottest.below": 1, "shadow.shedding": "coldest"})
    assert len(refused.value.problems) == 3
    assert "hottest" in refused.value.problems[2]
    assert {"hottest.above", "hottest.hits"} <= {path for path, _, _ in catalogue(defaults)}
    chosen = defaults.changed({**CHOSEN, "hottest.above": 0.5})
    assert from_record(to_record(IntakeSettings(), chosen)) == (IntakeSettings(), chosen)


def test_without_it_its_name_is_no_strategy() -> None:
    with pytest.raises(InvalidSettings, match=r"round\.shedding: must be one of"):
        Settings.parse({"round.shedding": "hottest"})


def test_its_figures_are_part_of_what_why_says(defaults: Settings) -> None:
    scene = scene_of(hot_and_cold(), defaults.changed({**CHOSEN, "hottest.hits": 1}))
    moved = explain(scene, "t/a/0x00000001_0x00000002")
    assert moved.rule == "hottest"
    assert "its usage is 90% of 80%, 0 rounds above it before" in moved.why
    assert "its usage is 10% of 80%" in explain(scene, "b").why


def test_no_shedder_imports_another() -> None:
    for name, shedder in SHEDDERS.items():
        own = Path(sys.modules[shedder.__module__].__file__ or "")
        others = set(SHEDDERS) - {name}
        imports = [line for line in own.read_text().splitlines() if "import" in line]
        assert not [line for line in imports for other in others if f"shedding.{other}" in line]


@pytest.mark.usefixtures("defaults")
def test_a_state_without_its_history_begins_with_the_defaults() -> None:
    state = unpack(pack(RoundState()), RoundState)
    assert state.histories.own == {}
    history = state.histories.of("hottest", STRATEGIES["hottest"].history)
    assert history.hits == 0
