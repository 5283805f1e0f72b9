"""The models keep their promises as far as CI searches, and break them where a cure is off."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from model import table
from model.check import small, without
from model.counterexample import tell_steps
from model.models import MODELS, Cure, Model, Promise
from model.spin import INSTALL, lacking
from tests.support.made import assert_made
from trimtab.ownership import TRANSITIONS

needs_spin = pytest.mark.skipif(
    bool(lacking()), reason=f"{' and '.join(lacking())} missing: {INSTALL}"
)

_QUICK = {
    "histories-NO_REPLICA_CHECK",
    "histories-NO_MARK",
    "twins-OLD_SESSION_RENEWS",
    "twins-COUNT_FROM_ANSWER",
    "claims-NO_SECOND_CLOCK",
    "split_merge-NAMES_BY_ORDER",
}
"""Of each model, the shortest search for each promise; `make slow` takes out the others too."""


def _marks(of_ci: bool) -> tuple[pytest.MarkDecorator, ...]:
    return () if of_ci else (pytest.mark.slow,)


_MODELS = [pytest.param(m, id=m.name, marks=_marks(m.name != "twins")) for m in MODELS]
"""The small search of twins takes as long as those of all others together."""

_CURES = [
    pytest.param(m, c, id=name, marks=_marks(name in _QUICK))
    for m in MODELS
    for c in m.cures
    if (name := f"{m.name}-{c.flag}")
]


@needs_spin
@pytest.mark.parametrize("model", _MODELS)
def test_with_all_cures_every_promise_is_kept(model: Model, tmp_path: Path) -> None:
    found = small(model, tmp_path)
    assert not found.violated
    assert found.complete


@needs_spin
@pytest.mark.parametrize(("model", "cure"), _CURES)
def test_without_a_cure_a_promise_is_broken(model: Model, cure: Cure, tmp_path: Path) -> None:
    search, found = without(model, cure, tmp_path)
    assert found.violated
    # Of the three promises only that of the epochs speaks of the highest one.
    assert ("highest" in found.violated) == (cure.breaks is Promise.ONE_EPOCH)
    told = list(tell_steps(search.replayed(), model.file))
    assert "assertion violated" in told[-1]


def test_each_model_has_a_promise_that_ci_sees_broken() -> None:
    names = {f"{model.name}-{cure.flag}" for model in MODELS for cure in model.cures}
    assert names >= _QUICK
    assert {name.partition("-")[0] for name in _QUICK} == {model.name for model in MODELS}


def test_each_schedule_that_made_two_brokers_serve_is_a_counterexample() -> None:
    holes = {cure.hole for model in MODELS for cure in model.cures}
    assert holes >= {"1", "2", "3", "4", "5", "6", "7", "14"}


def test_every_flag_of_a_cure_is_in_its_model_and_told_at_its_top() -> None:
    for model in MODELS:
        text = model.file.read_text("utf-8")
        head, _, rest = text.partition("*/")
        for cure in model.cures:
            assert cure.flag in head, f"{model.name}: {cure.flag} is not told at the top"
            assert re.search(rf"#(ifdef|ifndef|elif defined).*\b{cure.flag}\b", rest)


def test_the_document_tells_of_every_cure() -> None:
    document = (Path(__file__).parents[2] / "docs/ownership.md").read_text("utf-8")
    for model in MODELS:
        for cure in model.cures:
            assert f"| `{cure.flag}` | {cure.without} | {cure.breaks} |" in document


def test_the_table_of_the_models_is_that_of_the_records() -> None:
    assert_made(table.FILE, table.rendered())


def test_every_row_of_the_table_is_in_that_of_the_models() -> None:
    rendered = table.rendered()
    for state, row in TRANSITIONS.items():
        for event, effect in row.items():
            assert (
                f":: state == {state.name} && event == {event.name} -> becomes = "
                f"{effect.state.name}; named = OWNER_IS_{effect.owner.name}; "
                f"given = GIVEN_{effect.given.name}\n"
            ) in rendered


def test_records_change_by_the_table_alone() -> None:
    """Every model asks rules.pml, which asks the table; what else is written is a rebuild's."""
    rules = (table.FILE.parent / "rules.pml").read_text("utf-8")
    assert '#include "table.pml"' in rules
    assert "consult(STATE(was), event);" in rules
    for model in MODELS:
        text = model.file.read_text("utf-8")
        assert '#include "rules.pml"' in text
        assert "judge(" in text
        assert "becomes =" not in text
