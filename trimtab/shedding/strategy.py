"""What a shedding strategy is, with everything that belongs to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

from trimtab.plan import ShedWish
from trimtab.settings import Settings
from trimtab.view import View

H = TypeVar("H")


class Shedder(Protocol[H]):
    """Proposes moves. ``H`` is the history it keeps between rounds, None if it keeps none."""

    def __call__(self, view: View, history: H, settings: Settings) -> tuple[Sequence[ShedWish], H]:
        """The bundles to move, and the history after this round."""


class Strategy(NamedTuple):
    """A shedder, and what it brings beside the settings and histories that all share.

    The strategies of Pulsar and trimtab's own have typed groups in `trimtab.settings.Settings` and
    fields in `trimtab.state.round_state.Histories`, because other modules read these. Any other
    strategy brings its own: nothing else needs to know it.
    """

    shed: Shedder[Any]
    settings: type | None = None
    """A frozen dataclass whose fields are made by `trimtab.settings.setting.setting`. Its group has
    the strategy's name; the strategy reads it with `Settings.of`."""
    history: type | None = None
    """A frozen dataclass with a default for each field: plain values and NumPy columns."""
    figures: Callable[[View, Any, Settings, int], str] | None = None
    """What it compared for one broker row, as part of a sentence: `trimtab why` shows it. It gets
    the view, the history before the round and the settings."""
    learning: Callable[[Any], bool] = lambda _: False
    """Whether, by the history after a round, it knows too little yet to propose anything."""
    waiting: Callable[[Any, int], bool] = lambda *_: False
    """Whether, by the history after a round at that time (ms), it waits for brokers that are about
    to come or go."""
    hits: Callable[[Any, Settings], Mapping[str, tuple[int, int]]] = lambda *_: {}
    """By the name of a counter: the highest count in the history after a round, and the count at
    which it acts."""
    places_children: bool = False
    """Whether its plan says where the children of split bundles go, which no placement does then.
    """
