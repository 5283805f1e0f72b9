"""Variables of the environment that look like settings of the job and are none."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Final, NamedTuple

from pydantic import BaseModel

PREFIX: Final = "TRIMTAB_"
NESTED: Final = "__"

_CLOSE: Final = 0.75
"""Similarity from which a name counts as misspelt. Lower: variables of others are refused; higher:
a typo is ignored."""

_INJECTED: Final = re.compile(
    r"(.*_)?(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)"
)
"""What Kubernetes gives each container for a service called trimtab or trimtab-…"""
_ADDRESS: Final = re.compile(r"(tcp|udp|sctp)://.*", re.IGNORECASE)
"""The value of its …_PORT."""


_OF_COMMANDS: Final = frozenset({"CLUSTER", "CONTEXT", "CONTEXTS"})
"""What commands at a terminal read (docs/cli.md)."""


class Unknown(NamedTuple):
    """A name that is no setting; ``near`` is the one that was probably meant, or empty."""

    name: str
    near: str

    def __str__(self) -> str:
        meant = f" (did you mean {self.near}?)" if self.near else ""
        return f"{self.name}: no such setting{meant}"


def find_unknown(environment: Mapping[str, str], model: type[BaseModel]) -> list[Unknown]:
    """The variables with our prefix that are not settings of ``model``, sorted by name."""
    tops = {name.upper(): _is_nested(model, name) for name in model.model_fields}
    known = {name.removeprefix(PREFIX): name for name in variables_of(model)}
    found = []
    for name, value in sorted(environment.items()):
        if not name.upper().startswith(PREFIX):
            continue
        rest = name.upper().removeprefix(PREFIX)
        top, *below = rest.split(NESTED)
        is_setting = top in tops and (tops[top] or not below)
        if is_setting or rest in _OF_COMMANDS or _is_injected(rest, value):
            continue
        near = get_close_matches(rest, known, n=1, cutoff=_CLOSE)
        found.append(Unknown(name, known[near[0]] if near else ""))
    return found


def variables_of(model: type[BaseModel]) -> Iterable[str]:
    """The variable of each setting, also of those in groups."""
    return map(variable_of, setting_paths(model))


def variable_of(path: Iterable[str]) -> str:
    """The variable of the setting at this path."""
    return f"{PREFIX}{NESTED.join(path).upper()}"


def setting_paths(model: type[BaseModel]) -> Iterable[tuple[str, ...]]:
    """The path of each setting, by the names that a file uses."""
    for name, field in model.model_fields.items():
        own = field.alias or name
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            yield from ((own, *path) for path in setting_paths(kind))
        else:
            yield (own,)


def name_source(problem: str, environment: Mapping[str, str]) -> str:
    """The problem of a setting, and the variable that set it, if one did."""
    variable = variable_behind(problem, environment)
    return f"{problem} (from {variable})" if variable else problem


def variable_behind(problem: str, environment: Mapping[str, str]) -> str:
    """The variable that gives the setting named at the problem's beginning; empty if none does."""
    wanted = variable_of(problem.partition(": ")[0].split("."))
    return next((name for name in environment if name.upper() == wanted), "")


def _is_nested(model: type[BaseModel], name: str) -> bool:
    kind = model.model_fields[name].annotation
    # A plain type has no settings below it; groups and tables do.
    return kind not in {str, int, float, bool}


def _is_injected(rest: str, value: str) -> bool:
    if _INJECTED.fullmatch(rest):
        return True
    return (rest == "PORT" or rest.endswith("_PORT")) and _ADDRESS.fullmatch(value) is not None
