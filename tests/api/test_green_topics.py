"""What a plan says of what green is, and of topics that it has already."""

from __future__ import annotations

from typing import Any

import pytest

from control.migration.cycles import Going
from control.migration.green_admin import Ask, NoAnswer
from control.migration.green_topics import (
    MOST_NAMESPACES,
    MOST_TOPICS,
    PATIENCE_S,
    kind_notes,
    topic_notes,
)
from tests.support.migrations import GREEN
from trimtab.migration.migration import Target
from trimtab.migration.scopes import CLUSTER

ONE, TWO, THREE = (f"persistent://t/ns/{name}" for name in ("one", "two", "three"))
NEVER = {"lastConfirmedEntry": "3:-1", "cursors": {"s": {"markDeletePosition": "3:-1"}}}


def answering(answers: dict[str, Any], asked: list[str] | None = None) -> Ask:
    """A green that answers these paths, and no other."""

    def ask(web: str, path: str) -> Any:
        assert web == GREEN.web
        if asked is not None:
            asked.append(path)
        if path not in answers:
            raise NoAnswer(f"{path} answers 404")
        return answers[path]

    return ask


def notes(answers: dict[str, Any], going: Going, **more: Any) -> list[str]:
    return list(topic_notes(GREEN, going, answering(answers), **more))


@pytest.mark.parametrize("scope", [CLUSTER, "t/ns", ONE])
def test_topics_that_green_has_with_messages_are_named_before_anything_changes(scope: str) -> None:
    answers = {
        "persistent/t/ns": [ONE, TWO, THREE],
        "persistent/t/ns/one/internalStats": {**NEVER, "numberOfEntries": 7},
        "persistent/t/ns/two/internalStats": NEVER,
        # As a broker of trimtab answers, which has no internal stats.
        "persistent/t/ns/three/stats": {"msgInCounter": 2},
    }
    going = Going(scope, (), lambda: ["t/ns", "t/none"])
    [note] = notes(answers, going)
    named = [ONE] if scope == ONE else [ONE, THREE]
    assert note.startswith(f"note: target: has messages already in {', '.join(sorted(named))}: ")


@pytest.mark.parametrize(
    "stats",
    [
        {"entriesAddedCounter": 1},
        {"numberOfEntries": 1},
        {"lastConfirmedEntry": "8:0"},
        # All is read, and the ledgers are gone.
        {"lastConfirmedEntry": "9:-1", "cursors": {"s": {"markDeletePosition": "8:4"}}},
    ],
)
def test_a_topic_that_was_written_is_found_by_whatever_shows_it(stats: dict[str, Any]) -> None:
    answers = {"persistent/t/ns/one/internalStats": stats}
    assert len(notes(answers, Going(ONE))) == 1


def test_what_stays_there_by_an_earlier_migration_and_what_stays_here_is_not_named() -> None:
    written = {"numberOfEntries": 1}
    answers = {
        "persistent/t/ns": [ONE, TWO, "persistent://t/ns/__change_events"],
        "persistent/t/ns/one/internalStats": written,
        "persistent/t/ns/two/internalStats": written,
        "persistent/t/ns/__change_events/internalStats": written,
    }
    going = Going("t/ns", [TWO])
    assert notes(answers, going, stays=lambda _, names: set(names) & {ONE}) == []


def test_green_is_asked_a_bounded_number_of_things() -> None:
    asked = list[str]()
    namespaces = [f"t/{n:03}" for n in range(3 * MOST_NAMESPACES)]
    names = {each: [f"persistent://{each}/{n:03}" for n in range(100)] for each in namespaces}
    answers: dict[str, Any] = {f"persistent/{each}": found for each, found in names.items()}
    for found in names.values():
        for topic in found:
            answers[f"{topic.replace('://', '/')}/internalStats"] = {"numberOfEntries": 1}
    going = Going(CLUSTER, (), lambda: namespaces)
    [note] = topic_notes(GREEN, going, answering(answers, asked))
    assert len(asked) <= MOST_NAMESPACES + MOST_TOPICS
    assert f"of the {MOST_TOPICS} topics that were looked at" in note
    assert "and 15 more" in note


def test_a_slow_green_is_asked_for_a_while() -> None:
    now = [0.0]

    def ask(_web: str, path: str) -> Any:
        now[0] += 0.6 * PATIENCE_S
        return [ONE, TWO] if path == "persistent/t/ns" else {"numberOfEntries": 1}

    [note] = topic_notes(GREEN, Going("t/ns"), ask, clock=lambda: now[0])
    assert ONE in note
    assert TWO not in note


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        ({"/trimtab/v1/caller": {}, "/trimtab/v1/clusters/green/migrations": []}, "trimtab api"),
        ({"/trimtab/v1/clusters/green/migrations": []}, ""),
        ({}, "a rollback ends topics there"),
    ],
)
def test_a_plan_says_what_green_cannot_do(answers: dict[str, Any], said: str) -> None:
    found = list(kind_notes(GREEN, answering({"clusters": ["green"], **answers})))
    assert bool(found) == bool(said)
    assert all(said in each for each in found)


def test_nothing_is_said_of_a_green_that_does_not_answer() -> None:
    assert list(kind_notes(Target(serviceUrl=GREEN.web), answering({}))) == []
