"""The benchmark of explanations measures a round with moves, and answers from a full store."""

from __future__ import annotations

import msgspec
import pytest

from benchmarks import why
from deploy.redis_server import RedisServer
from sinks.redis.server.connections import redis_client


@pytest.fixture(autouse=True)
def short_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(why, "ROUNDS", 2)
    monkeypatch.setattr(why, "ANSWERS", 30)


@pytest.mark.parametrize("strategy", why.STRATEGIES)
def test_a_round_that_is_explained_commands_something(strategy: str) -> None:
    found = why.explained(strategy, 40, 25)
    shown = why.round_figure(strategy, found)
    assert found.moves > 0
    assert found.told.subjects
    assert shown.bar is not None
    assert {len(seconds) for seconds in shown.raw.values()} == {2}


def test_a_round_without_commands_is_not_measured() -> None:
    with pytest.raises(RuntimeError, match="threshold planned nothing: "):
        why.explained("threshold", 2, 1)


def test_every_answer_is_asked_of_a_full_store(redis_server: RedisServer) -> None:
    told = msgspec.structs.replace(why.explained("trimtab", 40, 25).told, keep=3)
    with redis_client(redis_server.url) as client:
        written = why.fill(client, told)
        client.config_resetstat()
        answer, ratio = why.answer_figures(redis_server.url, client, told)
        calls = client.info("commandstats")
    assert written.says.startswith(f"Redis stores a round's {len(told.subjects)} explanations")
    assert f"from 3 rounds of {len(told.subjects)} subjects" in answer.says
    # Two bare ones, and two of each answer: on the open connection and on one of its own.
    assert calls["cmdstat_hget"]["calls"] == why.ANSWERS * (2 + 2 + 2)
    assert ratio.unit == "of two HGETs"


def test_a_subject_that_is_not_found_is_not_measured(redis_server: RedisServer) -> None:
    told = why.explained("trimtab", 40, 25).told
    with redis_client(redis_server.url) as client:
        strange = msgspec.structs.replace(
            told, subjects={"nobody:1": next(iter(told.subjects.values()))}
        )
        with pytest.raises(RuntimeError, match="nothing was found of nobody:1"):
            list(why.answer_figures(redis_server.url, client, strange))
