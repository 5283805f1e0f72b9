"""The first difference between a recorded value and its replay."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from simulation.replay.run import ReplayCycle

_LONGEST: Final = 1000
"""Characters shown of one side."""
_MEMORY: Final = "stateHash"
"""A round's member that follows from all that is remembered, also of other rounds."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Both sides as text, shortened; a missing side is empty."""

    batch: int
    subject: str
    recorded: str
    again: str

    @property
    def decided_alike(self) -> bool:
        """Whether the rounds are equal, apart from what the cluster remembers after them."""
        return self.subject.endswith(f", {_MEMORY}")


def unlike_rounds(step: ReplayCycle) -> Iterator[Difference]:
    """Yield each round that differs from the recording, or that only one side has."""
    for cluster in sorted(step.recorded.keys() | step.again.keys()):
        recorded, again = step.recorded.get(cluster), step.again.get(cluster)
        if recorded != again:
            known = recorded or again
            name = f"{cluster}, round {known.round}" if known else cluster
            where, left, right = _narrowed(_plain(recorded), _plain(again))
            yield difference(step.batch.batch, f"{name}{where}", left, right)


def difference(batch: int, subject: str, recorded: object, again: object) -> Difference:
    return Difference(batch, subject, _shown(recorded), _shown(again))


def _plain(value: msgspec.Struct | None) -> Any:
    """The record's members, the memory last: if that is the first to differ, it is the only one."""
    if value is None:
        return None
    members = msgspec.to_builtins(value)
    return {name: members[name] for name in sorted(members, key=lambda name: name == _MEMORY)}


def _narrowed(left: Any, right: Any, where: str = "") -> tuple[str, Any, Any]:
    """The first member that differs, at any depth, on both sides."""
    if isinstance(left, dict) and isinstance(right, dict):
        pairs = ((f"{where}, {key}", left.get(key), right.get(key)) for key in {**left, **right})
    elif isinstance(left, list | tuple) and isinstance(right, list | tuple):
        longest = range(max(len(left), len(right)))
        pairs = ((f"{where}[{i}]", _at(left, i), _at(right, i)) for i in longest)
    else:
        return where, left, right
    for name, one, other in pairs:
        if one != other:
            return _narrowed(one, other, name)
    return where, left, right


def _at(values: list[Any] | tuple[Any, ...], index: int) -> Any:
    return values[index] if index < len(values) else None


def _shown(value: object) -> str:
    if value is None:
        return "nothing"
    text = value.decode(errors="replace") if isinstance(value, bytes) else str(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
