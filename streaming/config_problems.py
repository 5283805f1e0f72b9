"""What is wrong with the job's settings, in words that name the setting and where it belongs."""

from __future__ import annotations

import os
from difflib import get_close_matches
from functools import cache

from pydantic import BaseModel
from pydantic_core import ErrorDetails
from pydantic_settings import SettingsError

from streaming.environment import NESTED, PREFIX, Unknown, setting_paths
from trimtab.settings import IN_WORDS, catalogue
from trimtab.shedding import DEFAULTS


def unreadable(error: SettingsError) -> str:
    """Which variables may be at fault: the error quotes only the setting's name."""
    name = str(error).partition('"')[2].partition('"')[0]
    whole = f"{PREFIX}{name}".upper()
    parts = sorted(each for each in os.environ if each.upper().startswith(whole + NESTED))
    where = f", in {' or '.join(parts)}" if parts else ""
    return f"{name}: a table or list must be JSON{where}"


def problem_of(error: ErrorDetails, model: type[BaseModel]) -> str:
    """What pydantic found in the settings of ``model``, and the name that was probably meant."""
    name = ".".join(str(part) for part in error["loc"])
    if error["type"] != "extra_forbidden":
        return f"{name}: {error['msg'].removeprefix('Value error, ')}"
    if name in _of_rounds():
        return f"{name}: belongs under [settings]"
    if groups := _groups_with(name):
        return f"{name}: belongs under {' or '.join(f'[settings.{each}]' for each in groups)}"
    if name.startswith(("loadBalancer", "loadManager")):
        return f"{name}: no setting; `trimtab config import` tells what Pulsar's keys mean"
    known = [".".join(path) for path in setting_paths(model)]
    near = get_close_matches(name, known, n=1)
    return str(Unknown(name, near[0] if near else ""))


@cache
def _of_rounds() -> frozenset[str]:
    """Names that a file has under [settings]: groups and Pulsar's keys."""
    aliases = [known.alias for *_, known in catalogue(DEFAULTS) if known.alias]
    keys = {key for alias in aliases for key in (alias.key, alias.misspelt) if key}
    return frozenset(DEFAULTS.groups().keys() | keys)


@cache
def _groups_with(name: str) -> tuple[str, ...]:
    """The groups of settings that have one of this name."""
    known = (*(path for path, *_ in catalogue(DEFAULTS)), *IN_WORDS)
    paths = (path.partition(".") for path in known)
    return tuple(group for group, _, last in paths if last == name)
