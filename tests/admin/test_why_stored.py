"""`trimtab why` of what a real Redis has: what it prints, where, and with which code."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
import redis
from typer.testing import CliRunner, Result

from admin import cli
from deploy.redis_server import RedisServer
from sinks.redis.answers.explanations import Explanations
from tests.support.explanations import explanation, stored
from tests.support.opening import let_in
from trimtab.explaining.verdict import Verdict
from trimtab.reasons import Rest, Rule
from trimtab.wire import keys
from trimtab.wire.explanation import Explanation, Nearest, Option

BUNDLE, BROKER = "t/ns/0x00000000_0x80000000", "a:8080"
DOCUMENT = (Path(__file__).parents[2] / "docs/why.md").read_text("utf-8")
REFUSED = explanation(
    BUNDLE,
    8,
    "the round has moved the 3 bundles that it may; this one was number 4",
    verdict="refused",
    rule="budget",
    source="a:8080",
    destination="b:8080",
    usage={"a:8080": (0.71, 0.581), "b:8080": (0.52, 0.52)},
    range=(0.24, 0.061),
    figures={"max_moves": 3.0, "place": 4.0},
    options=(
        Option(broker="b:8080", usage=0.53, chosen=True),
        Option(broker="a:8080", usage=0.71, bar="has-it"),
    ),
    nearest=Nearest(setting="round.max_moves", now=3, then=4, so_that="its turn comes"),
)


@pytest.fixture
def cluster(request: pytest.FixtureRequest, client: redis.Redis) -> str:
    """Rounds 7 and 8 tell of the bundle, 7 to 9 of the broker."""
    name = str(request.node.name).partition("[")[0]
    let_in(client, name, 1)
    kept = Explanations(client)
    kept.write(1, stored(name, 7, explanation(BUNDLE, 7), explanation(BROKER, 7)))
    kept.write(1, stored(name, 8, REFUSED, explanation(BROKER, 8)))
    kept.write(1, stored(name, 9, explanation(BROKER, 9)))
    return name


def why(redis_server: RedisServer, cluster: str, *arguments: str) -> Result:
    place = ["--cluster", cluster, "--redis", redis_server.url]
    return CliRunner().invoke(cli.build_app(["why"]), ["why", *arguments, *place])


def test_an_answer_in_words(redis_server: RedisServer, cluster: str) -> None:
    result = why(redis_server, cluster, BUNDLE)
    assert result.exit_code == 0, result.output
    lines = [line.rstrip() for line in result.stdout.splitlines()]
    assert lines == [
        f"{BUNDLE} in c, round 8 of 1970-01-01T00:08:00.000+00:00",
        "refused from a:8080 to b:8080: budget (trimtab)",
        "the round has moved the 3 bundles that it may; this one was number 4",
        "expected usage of a:8080: 71.0 -> 58.1 %",
        "expected usage of b:8080: 52.0 %",
        "range of expected usage: 24.0 -> 6.1 points",
        "otherwise with round.max_moves = 4 or more, instead of 3: its turn comes",
        "the newest round is 9, which kept nothing of it: --round 9 --replay explains it there",
        "round 7 explains it too (--round)",
        "could go to  usage with it",
        "b:8080              53.0 %  chosen",
        "a:8080              71.0 %  has-it",
    ]


def test_an_old_answer_is_not_taken_for_the_newest(redis_server: RedisServer, cluster: str) -> None:
    assert "the newest round is 9" in why(redis_server, cluster, BUNDLE).stdout
    assert "the newest round is" not in why(redis_server, cluster, BROKER).stdout
    assert "the newest round is" not in why(redis_server, cluster, BUNDLE, "--round", "8").stdout


def test_a_time_is_answered_by_the_last_round_then(redis_server: RedisServer, cluster: str) -> None:
    for time in ("1970-01-01T00:08:00Z", "1970-01-01T00:08:59.999Z"):
        result = why(redis_server, cluster, BUNDLE, "--round", time)
        assert result.exit_code == 0, result.output
        assert "round 8 of" in result.stdout
    result = why(redis_server, cluster, BUNDLE, "--round", "1970-01-01T00:06:59Z")
    assert (result.exit_code, result.stdout) == (1, "")
    then = "1970-01-01T00:06:59.000+00:00"
    assert f"no round of {cluster} at or before {then} is stored" in result.stderr
    assert f"--round {then} --replay" in result.stderr


def test_an_answer_for_programs_has_the_members_that_are_documented(
    redis_server: RedisServer, cluster: str
) -> None:
    result = why(redis_server, cluster, BUNDLE, "-o", "json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout) == {
        "v": 1,
        "explanation": {
            "cluster": "c",
            "round": 8,
            "at": 480_000,
            "subject": BUNDLE,
            "strategy": "trimtab",
            "verdict": "refused",
            "rule": "budget",
            "why": "the round has moved the 3 bundles that it may; this one was number 4",
            "source": "a:8080",
            "destination": "b:8080",
            "usage": {"a:8080": [0.71, 0.581], "b:8080": [0.52, 0.52]},
            "range": [0.24, 0.061],
            "figures": {"max_moves": 3.0, "place": 4.0},
            "options": [
                {"broker": "b:8080", "usage": 0.53, "chosen": True},
                {"broker": "a:8080", "usage": 0.71, "bar": "has-it"},
            ],
            "nearest": {
                "setting": "round.max_moves",
                "now": 3,
                "then": 4,
                "soThat": "its turn comes",
            },
        },
        "tried": None,
        "asRecorded": True,
        "rounds": [8, 7],
        "kept": [7, 9],
    }
    for member in (*msgspec.structs.fields(Explanation), *msgspec.structs.fields(Option)):
        assert f"`{member.encode_name}`" in DOCUMENT or f'"{member.encode_name}"' in DOCUMENT


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        pytest.param(
            ["c:8080"], 1, "rounds 7 to 9 kept nothing of c:8080", id="no round explained it"
        ),
        pytest.param(
            [BUNDLE, "--round", "9"], 1, "round 9 kept nothing of", id="not in that round"
        ),
        pytest.param(
            ["aa:8080"], 1, "kept nothing of aa:8080; did you mean a:8080?", id="a name nearby"
        ),
        pytest.param(
            [BROKER, "--round", "99"], 1, "no round 99 of ", id="a round that is still to come"
        ),
        pytest.param([BROKER, "--replay"], 2, "--replay needs --round", id="a replay of what"),
        pytest.param([BROKER, "--round", "0"], 2, "neither the number of a", id="no round"),
        pytest.param([BROKER, "--round", "soon"], 2, "neither the number of a", id="no time"),
        pytest.param([BROKER, "--config", "/nowhere.toml"], 2, "nowhere.toml", id="no settings"),
    ],
)
def test_what_is_no_answer_says_so_on_stderr(
    redis_server: RedisServer, cluster: str, arguments: list[str], code: int, said: str
) -> None:
    if "--config" in arguments:
        result = CliRunner().invoke(
            cli.build_app(["why"]), ["why", *arguments, "--cluster", cluster]
        )
    else:
        result = why(redis_server, cluster, *arguments)
    assert (result.exit_code, result.stdout) == (code, "")
    assert said in result.stderr


def test_a_subject_that_is_not_stored_is_sent_to_a_replay(
    redis_server: RedisServer, cluster: str
) -> None:
    result = why(redis_server, cluster, BUNDLE, "--round", "9")
    assert "; rounds 8, 7 explain it: " in result.stderr
    assert f"Next: trimtab why {BUNDLE} --cluster {cluster} --round 9 --replay" in result.stderr


def test_a_name_in_the_command_to_copy_is_quoted_for_the_shell(
    redis_server: RedisServer, cluster: str
) -> None:
    result = why(redis_server, cluster, "b; reboot:8080", "--round", "9")
    assert f"Next: trimtab why 'b; reboot:8080' --cluster {cluster} --round 9" in result.stderr


def test_a_password_that_is_wrong_gives_1(redis_server: RedisServer, cluster: str) -> None:
    url = redis_server.url.replace("redis://:", "redis://:not-")
    result = CliRunner().invoke(
        cli.build_app(["why"]), ["why", BROKER, "--cluster", cluster, "--redis", url]
    )
    assert (result.exit_code, result.stdout) == (1, "")
    assert "password" in result.stderr


def test_data_of_another_version_gives_exit_code_1_and_no_traceback(
    redis_server: RedisServer, client: redis.Redis, cluster: str
) -> None:
    client.hset(keys.explanations_key(cluster, 9), BROKER, '{"cluster": 1}')
    result = why(redis_server, cluster, BROKER)
    assert (result.exit_code, result.stdout) == (1, "")
    assert "round 9 was explained by another version of trimtab" in result.stderr


def test_the_document_has_every_rule_and_verdict() -> None:
    unspoken = {Rule.CONFLICT}
    words = [each for each in (*Rule, *Rest, *Verdict) if each not in unspoken]
    missing = [word.value for word in words if f"`{word.value}`" not in DOCUMENT]
    assert missing == [], "docs/why.md: each has its row, in which `it` stands in backquotes"
