"""The Lua scripts as the server gets them, with the tables of the core written into them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import sha1
from importlib.resources import files

from trimtab.ownership import BROKER_EVENTS, TRANSITIONS
from trimtab.wire.ownership import Refused

# Under this line the server checks memory, disk and replicas before a script and not in the middle.
_SHEBANG = "#!lua"


@dataclass(frozen=True, slots=True)
class Script:
    """A script's text and the SHA-1 that EVALSHA calls it by."""

    text: str
    sha: str


@cache
def open_script() -> Script:
    return _script(_SHEBANG, _source("open.lua"))


@cache
def transition_script() -> Script:
    effects = {
        f"{state.value} {event.value}": f'"{effect.state.value} {effect.owner.value}"'
        for state, row in TRANSITIONS.items()
        for event, effect in row.items()
    }
    return _script(
        _SHEBANG,
        _table("EFFECTS", effects),
        _table("BROKER_EVENTS", {event.value: "true" for event in sorted(BROKER_EVENTS)}),
        _table("REFUSED", {refused.name: f'"{refused.value}"' for refused in Refused}),
        _source("transition.lua"),
    )


def _script(*parts: str) -> Script:
    text = "\n".join(parts)
    return Script(text, sha1(text.encode(), usedforsecurity=False).hexdigest())


def _table(name: str, rows: Mapping[str, str]) -> str:
    return "\n".join(
        [f"local {name} = {{", *(f'["{key}"] = {value},' for key, value in rows.items()), "}"]
    )


def _source(name: str) -> str:
    return files("sinks").joinpath("lua", name).read_text("utf-8")
