"""The scripts as sent to the server: what Redis would notice only when a rare line runs."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

import pytest

from sinks.redis import scripts
from sinks.redis.server.script import Script

SCRIPTS: Final = [
    scripts.forget_sessions_script,
    scripts.hints_script,
    scripts.lease_script,
    scripts.migrations_script,
    scripts.open_script,
    scripts.owned_script,
    scripts.prune_script,
    scripts.refill_script,
    scripts.restore_script,
    scripts.topics_script,
    scripts.transition_script,
    scripts.vouch_script,
    scripts.why_script,
]
_WORDS: Final = """
    and break do else elseif end false for function if in local nil not or repeat return then
    true until while
    redis cjson string table math tonumber tostring type ipairs pairs unpack pcall error KEYS ARGV
"""
_APART: Final = re.compile(r"""--[^\n]*|^#![^\n]*|"[^"\n]*"|'[^'\n]*'""", re.MULTILINE)
"""Comments and texts."""
_MEMBER: Final = re.compile(r"\.\w+|[{,]\s*\w+(?=\s*=[^=])")
_NAME: Final = re.compile(r"[A-Za-z_]\w*")
_DEFINING: Final = re.compile(
    r"function (\w*)\(([^)]*)\)|local (?!function)([\w, ]+)|for ([\w, ]+?) (?:in|=)"
)


def undefined(text: str) -> set[str]:
    """Names that a script uses and nothing defines."""
    code = _APART.sub('""', text)
    defined = {
        name for parts in _DEFINING.findall(code) for part in parts for name in _NAME.findall(part)
    }
    return set(_NAME.findall(_MEMBER.sub(".", code))) - defined - set(_WORDS.split())


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_script_uses_only_names_that_it_has(script: Callable[[], Script]) -> None:
    assert undefined(script().text) == set()


def test_a_name_that_nothing_defines_is_found() -> None:
    text = scripts.transition_script().text
    assert undefined(text.replace("local LEASES, OWNED", "local OTHERS, OWNED")) == {"LEASES"}


def test_all_scripts_are_looked_at() -> None:
    made = {name for name in vars(scripts) if name.endswith("_script") and name[0] != "_"}
    assert made == {script.__name__ for script in SCRIPTS}
