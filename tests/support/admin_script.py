"""A script of pulsar-admin commands, and whether two systems answered it alike.

A line of a script is `name: arguments` or `name [leeway]: arguments`; `#` begins a heading. `{…}`
stands for what differs from system to system: the cluster, each broker's id, host and URLs, and the
URLs of the cluster that its topics migrate to.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

SCRIPT: Final = Path(__file__).parents[1] / "e2e" / "pulsar_admin" / "commands.txt"
RECORDED: Final = SCRIPT.with_name("answers.json")
"""What real Pulsar brokers answered to the script: 4.0.8, Extensible, three of them, unsecured."""


class Leeway(StrEnum):
    """What of an answer may differ although both systems are right."""

    NONE = ""
    OWNER = "owner"
    """Any broker may stand where another stands: the system chose."""
    ORDER = "order"
    """The same words in any order: Pulsar prints a set."""
    EXIT = "exit"
    """All but the exit code: the figures are each system's own."""
    FREE = "free"
    """All: the command prepares what follows."""


class Answer(NamedTuple):
    exit: int
    stdout: str
    stderr: str


@dataclass(frozen=True, slots=True)
class Command:
    name: str
    leeway: Leeway
    line: str
    """The arguments as the script has them."""

    def arguments(self, places: Mapping[str, str]) -> list[str]:
        """The arguments to run: `{name}` becomes ``places["name"]``."""
        return shlex.split(_PLACE.sub(lambda found: places[found[1]], self.line))


class Difference(NamedTuple):
    name: str
    recorded: Answer
    answered: Answer


_LINE = re.compile(r"(?P<name>[a-z0-9-]+)(?: \[(?P<leeway>[a-z]+)\])?: (?P<line>.+)")
_PLACE = re.compile(r"\{([a-z0-9-]+)\}")
_BROKER = re.compile(r"\{broker-\d+")
# What only a JVM can say: where in its own code an error arose.
_TRACE = re.compile(r"\n\nStacktrace:.*|\n\t(?:at |\.\.\. )[^\n]*", re.DOTALL)
_WORD = re.compile(r"[^\s,\[\]()]+")


GREEN: Final = "http://green.example:8080"


def places_of(
    cluster: str, brokers: Iterable[tuple[str, str, str]], green: str = GREEN
) -> dict[str, str]:
    """What `{cluster}` and `{broker-1}` … stand for; of each broker: id, web URL, service URL.
    ``green``: the web URL of the cluster that topics migrate to, which Pulsar does not ask.

    Brokers whose ids share a host cannot be told apart by `{broker-1-host}`.
    """
    places = {
        "cluster": cluster,
        "green-web": green,
        "green-service": f"pulsar://{green.partition('://')[2]}",
        "green-secure": f"pulsar+ssl://{green.partition('://')[2]}",
    }
    for number, (broker, web, service) in enumerate(brokers, 1):
        places[f"broker-{number}"] = broker
        places[f"broker-{number}-host"] = broker.rsplit(":", 1)[0]
        places[f"broker-{number}-web"] = web
        places[f"broker-{number}-service"] = service
    return places


def section(script: str, heading: str) -> str:
    """The commands below a heading; ValueError if there is none."""
    _, found, rest = script.partition(f"# {heading}\n")
    if not found:
        raise ValueError(f"no heading {heading}")
    return rest.partition("\n# ")[0]


def parse(script: str) -> Iterator[Command]:
    """ValueError with the first line that is no command, or whose name is taken."""
    names: set[str] = set()
    for line in filter(None, script.splitlines()):
        if line.startswith("#"):
            continue
        found = _LINE.fullmatch(line)
        if not found or found["name"] in names:
            raise ValueError(f"not a command, or its name is taken: {line}")
        names.add(found["name"])
        yield Command(found["name"], Leeway(found["leeway"] or ""), found["line"])


def normalise(answer: Answer, places: Mapping[str, str]) -> Answer:
    """The answer with `{name}` for what differs from system to system, and without stack traces."""
    names: dict[str, str] = {}
    for name, text in places.items():
        names.setdefault(text, name)
    # The longest first: a broker's URL has its id in it, and that its host.
    texts = "|".join(re.escape(text) for text in sorted(names, key=len, reverse=True))
    known = re.compile(rf"(?<![\w.-])(?:{texts})(?![\w-])")

    def shown(text: str) -> str:
        return _TRACE.sub("", known.sub(lambda found: f"{{{names[found[0]]}}}", text))

    return Answer(answer.exit, shown(answer.stdout), shown(answer.stderr))


def differences(
    commands: Iterable[Command], recorded: Mapping[str, Answer], answered: Mapping[str, Answer]
) -> list[Difference]:
    """Those whose normalised answers are not alike. KeyError if one has no answer."""
    pairs = ((command, recorded[command.name], answered[command.name]) for command in commands)
    return [
        Difference(command.name, one, other)
        for command, one, other in pairs
        if _comparable(command.leeway, one) != _comparable(command.leeway, other)
    ]


def read_answers(file: Path) -> dict[str, Answer]:
    """The answers of `write_answers`, by the commands' names."""
    kept = msgspec.json.decode(file.read_bytes(), type=dict[str, _Kept])
    return {
        name: Answer(one.exit, "".join(one.stdout), "".join(one.stderr))
        for name, one in kept.items()
    }


def write_answers(file: Path, commands: Iterable[Command], answers: Mapping[str, Answer]) -> None:
    """Keep the normalised answers, for people too: line by line, and only what is compared."""
    kept = {command.name: _kept(command.leeway, answers[command.name]) for command in commands}
    file.write_bytes(msgspec.json.format(msgspec.json.encode(kept), indent=1) + b"\n")


class _Kept(msgspec.Struct, omit_defaults=True):
    exit: int
    stdout: list[str] = []
    stderr: list[str] = []


def _kept(leeway: Leeway, answer: Answer) -> _Kept:
    if leeway in (Leeway.EXIT, Leeway.FREE):
        return _Kept(answer.exit)
    return _Kept(answer.exit, *(text.splitlines(keepends=True) for text in answer[1:]))


def _comparable(leeway: Leeway, answer: Answer) -> object:
    match leeway:
        case Leeway.FREE:
            return None
        case Leeway.EXIT:
            return answer.exit
        case Leeway.OWNER:
            return answer.exit, _BROKER.sub("{broker-?", answer.stdout), answer.stderr
        case Leeway.ORDER:
            return answer.exit, sorted(_WORD.findall(answer.stdout)), answer.stderr
        case Leeway.NONE:
            return answer
