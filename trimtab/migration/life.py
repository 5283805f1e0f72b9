"""The life of a migration, as one table: docs/migration.md draws it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final


class MigrationState(StrEnum):
    """What has become of a migration."""

    RUNNING = "running"
    """Topics of the waves that have begun go to green."""
    PAUSED = "paused"
    """No further topic is terminated. Those that are terminated go on: their producers have left.
    """
    COMPLETED = "completed"
    """No topic of the scope is left on blue, where none may be created."""
    ROLLING_BACK = "rolling-back"
    """Topics of which green has taken no write return to blue; the others go on."""
    ROLLED_BACK = "rolled-back"
    """Each topic is back on blue, or stays on green and is named in the report."""


class MigrationEvent(StrEnum):
    """What happens to a migration: first the verbs of people."""

    PAUSE = "pause"
    RESUME = "resume"
    ROLL_BACK = "roll-back"

    STOP = "stop"
    """Too much goes wrong: the gate pauses it."""
    FINISH = "finish"
    """Nothing is left to do."""


_S, _E = MigrationState, MigrationEvent

TRANSITIONS: Final[Mapping[MigrationState, Mapping[MigrationEvent, MigrationState]]] = (
    MappingProxyType(
        {
            _S.RUNNING: {
                _E.PAUSE: _S.PAUSED,
                _E.STOP: _S.PAUSED,
                _E.FINISH: _S.COMPLETED,
                _E.ROLL_BACK: _S.ROLLING_BACK,
            },
            _S.PAUSED: {
                _E.RESUME: _S.RUNNING,
                _E.FINISH: _S.COMPLETED,
                _E.ROLL_BACK: _S.ROLLING_BACK,
            },
            _S.COMPLETED: {_E.ROLL_BACK: _S.ROLLING_BACK},
            _S.ROLLING_BACK: {_E.FINISH: _S.ROLLED_BACK},
            _S.ROLLED_BACK: {},
        }
    )
)
"""The state of a migration after each event; all others are refused."""

UNDER_WAY: Final = frozenset({_S.RUNNING, _S.PAUSED, _S.ROLLING_BACK})
"""States in which topics still change."""
CLAIMING: Final = UNDER_WAY | {_S.COMPLETED}
"""States that keep other migrations from the same topics."""
BACK: Final = frozenset({_S.ROLLING_BACK, _S.ROLLED_BACK})
"""States in which topics that green has not written return to blue. After the rollback these are
topics whose record in a restored store says that they have not returned."""
ONWARD: Final = frozenset({_S.RUNNING, _S.PAUSED, _S.COMPLETED})
"""States in which topics that were terminated go on to green."""


def allows(state: MigrationState, event: MigrationEvent) -> bool:
    """Whether ``event`` may happen to a migration in ``state``."""
    return event in TRANSITIONS[state]
