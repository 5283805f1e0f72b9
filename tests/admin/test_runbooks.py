"""What a runbook tells to type can be typed."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest
from typer.main import get_command

from admin.cli import build_app
from trimtab.shedding import DEFAULTS
from trimtab.wire.reports.poison import Poison

RUNBOOKS: Final = Path(__file__).parents[2] / "docs" / "runbooks"
_TYPED: Final = re.compile(r"^(trimtab .*)$|`(trimtab [^`]*)`", re.MULTILINE)
_SET: Final = re.compile(r"config set (\S+)=(\S+)")


def typed() -> Iterator[tuple[str, str]]:
    for page in sorted(RUNBOOKS.glob("*.md")):
        for block, inline in _TYPED.findall(page.read_text("utf-8")):
            yield page.stem, block or inline


@cache
def trimtab() -> Any:
    """The command line, which is not built again for each line."""
    return get_command(build_app())


def find_command(words: list[str]) -> tuple[Any, list[str]]:
    """The command, None where there is none, and the words after its name."""
    found: Any = trimtab()
    # Typer brings a Click of its own: a group is what has commands.
    while hasattr(found, "commands"):
        found, words = found.commands.get(next(iter(words), "")), words[1:]
    return found, words


@pytest.mark.parametrize(("page", "line"), [*dict.fromkeys(typed())])
def test_every_command_of_a_runbook_exists_with_its_options(page: str, line: str) -> None:
    command, words = find_command(shlex.split(line)[1:])
    assert command is not None, f"{page}: {line}"
    options = {name for param in command.params for name in param.opts}
    assert {word for word in words if word.startswith("--")} - options == set(), f"{page}: {line}"


def test_every_reason_of_a_dead_letter_has_what_to_do() -> None:
    page = (RUNBOOKS / "poison.md").read_text("utf-8")
    rows = re.findall(r"^\| (`.*?) \| .+ \| .+ \|$", page, re.MULTILINE)
    listed = [reason for row in rows for reason in re.findall(r"`([^`]+)`", row)]
    others = ["bad-record", "wrong-cluster", "refused-intent"]
    others += ["bad-change", "bad-command", "size", "generation"]
    assert sorted(listed) == sorted([*(each.value for each in Poison), *others])


def test_a_command_that_does_not_exist_is_found() -> None:
    assert find_command(["brokers", "explode"])[0] is None
    assert find_command(["brokers"])[0] is None


def test_settings_that_a_runbook_changes_exist_and_may_have_the_value() -> None:
    found = [each for _, line in typed() for each in _SET.findall(line)]
    assert found
    for name, value in found:
        known = {"true": True, "false": False}
        DEFAULTS.changed({name: known.get(value, value) if value in known else float(value)})
