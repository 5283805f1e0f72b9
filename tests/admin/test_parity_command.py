"""`trimtab parity`: a line in, a line out."""

from __future__ import annotations

import json

from typer.testing import CliRunner

from admin.cli import build_app
from admin.exit_codes import FAILED, OK


def test_each_line_is_answered() -> None:
    case = json.dumps({"id": "a", "op": "hash", "topics": ["persistent://acme/ns/-"]})
    done = CliRunner().invoke(build_app(["parity"]), ["parity"], input=f"{case}\n\n{case}\n")
    assert done.exit_code == OK
    answer = {"id": "a", "op": "hash", "positions": {"persistent://acme/ns/-": "0x7786d42b"}}
    assert [json.loads(line) for line in done.stdout.splitlines()] == [answer, answer]


def test_a_case_without_an_answer_says_why_and_the_next_is_answered() -> None:
    unknown = json.dumps({"id": 7, "op": "shed", "strategy": "Nobody"})
    known = json.dumps({"id": 8, "op": "hash", "topics": []})
    done = CliRunner().invoke(
        build_app(["parity"]), ["parity"], input=f"{unknown}\nnot json\n{known}\n"
    )
    assert done.exit_code == FAILED
    first, second, third = map(json.loads, done.stdout.splitlines())
    assert first == {
        "id": 7,
        "op": "shed",
        "error": "Unsupported: trimtab cannot answer 'shed Nobody'",
    }
    assert second["error"].startswith("JSONDecodeError: ")
    assert third == {"id": 8, "op": "hash", "positions": {}}
    assert "2 cases have no answer" in done.stderr
