"""The Lua scripts as sent to the server, with the core's tables rendered into them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import TypeVar

from sinks.redis.server.script import Script
from trimtab.migration.life import BACK, ONWARD
from trimtab.migration.topic_life import COUNTED, MAKING, MAY_ENLIST, MOST_NEW
from trimtab.migration.topic_life import TRANSITIONS as TOPIC_TRANSITIONS
from trimtab.ownership import (
    BROKER_EVENTS,
    CLOCK_MARGIN_MS,
    JOB_EVENTS,
    LONGEST_LEASE_MS,
    MOST_CHILDREN,
    MOST_FALLS,
    REPLICA_LAG_S,
    REPLICA_WAIT_MS,
    SERVING,
    SOON_MS,
    STREAK_ENDS,
    TRANSITIONS,
)
from trimtab.wire.keys import MARK
from trimtab.wire.ownership import Refused
from trimtab.wire.topics import TopicRefused

S = TypeVar("S", bound=StrEnum)
E = TypeVar("E", bound=StrEnum)
T = TypeVar("T")

# With this line the server checks memory, disk and replicas before a script, not in the middle.
_SHEBANG = "#!lua"
# The scripts that keep brokers alive must work when memory is full.
_EVEN_IF_FULL = "#!lua flags=allow-oom"

_MARK = f'local MARK = "{MARK}"'

_REFUSED = re.compile(r"REFUSED\.(\w+)")

ASSERTION_KEPT_MS = 24 * 3600 * 1000
"""How long assertions are kept: they are useless once the history is open."""

MOST_JOURNAL = 100_000
"""Some hours of a busy fleet while Kafka is away, and about 50 MB. Fewer: an audit has gaps after a
shorter outage; more: the server is full before."""

COMMANDS_KEPT_S = 86_400
"""How long a command stream is kept after its last command."""

MOST_COMMANDS = 10_000
"""In one stream: a broker this far behind has missed what it was told long ago."""


@cache
def open_script() -> Script:
    return _of_history(_SHEBANG, _replica_limits(), "replicas.lua", "marks.lua", "open.lua")


@cache
def restore_script() -> Script:
    return _of_history(_SHEBANG, _most_journal(), "records.lua", "restore.lua")


@cache
def owned_script() -> Script:
    return _of_history(_SHEBANG, "", "records.lua", "owned.lua")


@cache
def prune_script() -> Script:
    return _gated(_most_journal(), "prune.lua")


@cache
def forget_sessions_script() -> Script:
    return _gated("", "forget_sessions.lua")


@cache
def refill_script() -> Script:
    return Script.of(_SHEBANG, _MARK, _source("refill.lua"))


@cache
def hints_script() -> Script:
    return Script.of(_SHEBANG, _source("generation.lua"), _source("hints.lua"))


@cache
def why_script() -> Script:
    return Script.of(_SHEBANG, _source("generation.lua"), _source("why.lua"))


@cache
def topics_script() -> Script:
    """Changes of topics that migrate; brokers run it."""
    tables = (
        _effects(
            "TOPIC_EFFECTS",
            TOPIC_TRANSITIONS,
            lambda effect: f"{effect.state} {effect.given} {str(effect.stays).lower()}",
        ),
        _set("SERVING", SERVING),
        _set("ONWARD", ONWARD),
        _set("BACK", BACK),
        _set("MAY_ENLIST", MAY_ENLIST),
        _set("MAKING", MAKING),
        _set("COUNTED", COUNTED),
        f"local MOST_NEW = {MOST_NEW}",
    )
    names = "history.lua", "replicas.lua", "marks.lua", "records.lua", "stages.lua", "topics.lua"
    text = "\n".join((_SHEBANG, _MARK, _replica_limits(), *tables, *map(_source, names)))
    return Script.of(_REFUSED.sub(lambda name: f'"{TopicRefused[name[1]].value}"', text))


@cache
def migrations_script() -> Script:
    limits = f"local COMMANDS_KEPT_S, MOST_COMMANDS = {COMMANDS_KEPT_S}, {MOST_COMMANDS}"
    shared = map(_source, ("generation.lua", "stages.lua", "migrations.lua"))
    return Script.of(_SHEBANG, limits, _set("MAY_ENLIST", MAY_ENLIST), *shared)


@cache
def vouch_script() -> Script:
    margin = f"local CLOCK_MARGIN_MS = {CLOCK_MARGIN_MS}"
    return Script.of(_EVEN_IF_FULL, margin, _source("vouch.lua"))


@cache
def lease_script() -> Script:
    kept = f"local LONGEST_LEASE_MS, KEPT_MS = {LONGEST_LEASE_MS}, {ASSERTION_KEPT_MS}"
    shared = "replicas.lua", "marks.lua", "sessions.lua"
    return _of_history(_EVEN_IF_FULL, f"{kept}\n{_replica_limits()}", *shared, "lease.lua")


@cache
def transition_script() -> Script:
    tables = (
        _effects("EFFECTS", TRANSITIONS, " ".join),
        _set("BROKER_EVENTS", BROKER_EVENTS),
        _set("JOB_EVENTS", JOB_EVENTS),
        _set("STREAK_ENDS", STREAK_ENDS),
        f"local SOON_MS, MOST_FALLS, MOST_CHILDREN = {SOON_MS}, {MOST_FALLS}, {MOST_CHILDREN}",
        f"local CLOCK_MARGIN_MS, LONGEST_LEASE_MS = {CLOCK_MARGIN_MS}, {LONGEST_LEASE_MS}",
        _most_journal(),
        _replica_limits(),
    )
    parts = "history.lua", "marks.lua", "records.lua", "sessions.lua", *_TRANSITION
    sources = (_on_demand(_RARE[each], each) if each in _RARE else _source(each) for each in parts)
    text = "\n".join((_SHEBANG, _MARK, *tables, *sources))
    return Script.of(_REFUSED.sub(lambda name: f'"{Refused[name[1]].value}"', text))


_TRANSITION = (
    "transition/request.lua",
    "transition/pages.lua",
    "transition/reading.lua",
    "replicas.lua",
    "transition/admission.lua",
    "transition/brokers.lua",
    "transition/placing.lua",
    "transition/ranges.lua",
    "transition/tiling.lua",
    "transition/overlaps.lua",
    "transition/judging.lua",
    "transition/writing.lua",
    "transition/commands.lua",
    "transition/apply.lua",
)
"""Each part uses names of those before it."""

_RARE: Mapping[str, str] = MappingProxyType(
    {
        "replicas.lua": "short_of_replicas",
        "transition/placing.lua": "best_of",
        "transition/tiling.lua": "fits",
        "transition/overlaps.lua": "overlaps",
    }
)
"""Parts that most transitions do not need, and the one function of each that others call."""

BROKERS_SCRIPTS = (transition_script, lease_script, topics_script)
"""Scripts that brokers run but may not load."""


def _of_history(first: str, constants: str, *names: str) -> Script:
    """Build a script from files, which checks the history of the data."""
    return Script.of(first, _MARK, constants, _source("history.lua"), *map(_source, names))


def _gated(constants: str, name: str) -> Script:
    """Build a script that runs only while the cluster is open to its caller."""
    shared = map(_source, ("generation.lua", "history.lua", "marks.lua", "gate.lua"))
    return Script.of(_SHEBANG, _MARK, constants, *shared, _source(name))


def _on_demand(function: str, part: str) -> str:
    """The part, its functions made at the first call of the one that others call.

    A run makes the functions of its script again, which takes as long as reading a record.
    """
    return f"""local function {function}(...)
  local function make()
{_source(part)}
    return {function}
  end
  {function} = make()
  return {function}(...)
end"""


def _replica_limits() -> str:
    return f"local REPLICA_LAG_S, REPLICA_WAIT_MS = {REPLICA_LAG_S}, {REPLICA_WAIT_MS}"


def _most_journal() -> str:
    return f"local MOST_JOURNAL = {MOST_JOURNAL}"


def _effects(name: str, table: Mapping[S, Mapping[E, T]], said: Callable[[T], str]) -> str:
    """A table of transitions as a text: every run would rebuild a Lua table, which takes a tenth of
    the run's time."""
    effects = "".join(
        f"{state.value} {event.value}={said(effect)};"
        for state, row in table.items()
        for event, effect in row.items()
    )
    return f'local {name} = ";{effects}"'


def _set(name: str, words: Iterable[StrEnum]) -> str:
    return f'local {name} = "{" ".join(["", *sorted(words), ""])}"'


def _source(name: str) -> str:
    return files("sinks.redis").joinpath("lua", name).read_text("utf-8")
