"""What is wrong with the job's settings, in words that name the setting and where it belongs."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Final

from pydantic import BaseModel
from pydantic_core import ErrorDetails
from pydantic_settings import SettingsError

from streaming.environment import NESTED, PREFIX, Unknown, setting_paths
from trimtab.settings import IN_WORDS, catalogue
from trimtab.shedding import DEFAULTS

_SUGGESTED: Final = re.compile(r"\(did you mean [^)]*\)")
_VARIABLE: Final = re.compile(rf"\b{PREFIX}\w+", re.IGNORECASE)

_MISSPELT: Final = 0.75
"""Similarity from which a name counts as a misspelt one of [settings]."""


def remedy(problems: Sequence[str], file: Path | None, environment: Mapping[str, str]) -> str:
    """What to do about them: which variables to unset, and whether to edit the file."""
    named = [_SUGGESTED.sub("", each) for each in problems]
    behind = [_VARIABLE.findall(each) for each in named]
    unset = sorted({each for found in behind for each in found} & environment.keys())
    steps = [f"unset {' '.join(unset)}"] if unset else []
    if file is not None and not all(behind):
        steps.append(f"edit {file}")
    return " and ".join(steps)


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
    if _groups_with(name):
        return f"{name}: belongs under {_places(name)}"
    if name.startswith(("loadBalancer", "loadManager")):
        return f"{name}: no setting; `trimtab config import` tells what Pulsar's keys mean"
    known = [".".join(path) for path in setting_paths(model)]
    near = get_close_matches(name, known, n=1) or [
        f"{each} under {_places(each)}"
        for each in get_close_matches(name, _names_in_groups(), n=1, cutoff=_MISSPELT)
    ]
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
    paths = (path.partition(".") for path in _paths())
    return tuple(group for group, _, last in paths if last == name)


def _places(name: str) -> str:
    return " or ".join(f"[settings.{each}]" for each in _groups_with(name))


@cache
def _names_in_groups() -> frozenset[str]:
    return frozenset(path.partition(".")[2] for path in _paths())


def _paths() -> tuple[str, ...]:
    return (*(path for path, *_ in catalogue(DEFAULTS)), *IN_WORDS)
