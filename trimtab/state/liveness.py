"""Which brokers are gone, which are flapping, and which are draining.

A broker is gone from its loss until it joins. One that joins again waits before it gets bundles:
delay = first_delay * 2 ** (losses - 1), at most longest_delay; a time without losses resets it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from trimtab.settings import FlappingSettings, Settings
from trimtab.state.pace import Pace, allowed_silence

_DOUBLINGS: Final = 32
"""More than any delay needs."""


@dataclass(frozen=True, slots=True)
class Losses:
    """A broker's losses, by Kafka's clock: a job that reads them late must not think them new."""

    number: int
    last_ms: int
    joined_ms: int | None = None
    """When it joined after the last loss."""


class Late(NamedTuple):
    """Brokers that had missed a renewal when another was lost: all, or a page, numbered from 1."""

    brokers: Collection[str] = ()
    page: int = 0


_NONE: Final = Late()


@dataclass(frozen=True, slots=True)
class Liveness:
    """The liveness of all brokers; replaced, never changed."""

    gone: dict[str, int] = field(default_factory=dict)
    """Broker to when its loss was learnt (batch timestamp)."""
    losses: dict[str, Losses] = field(default_factory=dict)
    draining: frozenset[str] = frozenset()
    late: dict[str, int] = field(default_factory=dict)
    """Broker to when it was seen to have missed a renewal, by Kafka's clock."""

    def lost(self, broker: str, at_ms: int, now_ms: int, others: Late = _NONE) -> Liveness:
        """The liveness after ``broker``'s lease ran out, by Kafka at ``at_ms``; if it was gone
        already, only ``others`` may be new."""
        late = dict.fromkeys(others.brokers, at_ms)
        if others.page > 1:
            late = self.late | late
        if broker in self.gone:
            return replace(self, late=late) if others.page else self
        number = self.losses[broker].number if broker in self.losses else 0
        losses = self.losses | {broker: Losses(number + 1, at_ms)}
        return replace(self, gone=self.gone | {broker: now_ms}, losses=losses, late=late)

    def joined(self, broker: str, at_ms: int) -> Liveness:
        """The liveness after ``broker`` took a lease; the same if it was not gone."""
        if broker not in self.gone:
            return self
        gone = {name: ms for name, ms in self.gone.items() if name != broker}
        losses = self.losses
        if broker in losses:
            losses = losses | {broker: replace(losses[broker], joined_ms=at_ms)}
        return replace(self, gone=gone, losses=losses)

    def drained(self, broker: str) -> Liveness:
        """The liveness with ``broker`` draining."""
        return replace(self, draining=self.draining | {broker})

    def undrained(self, broker: str) -> Liveness:
        """The liveness with ``broker`` in use again."""
        return replace(self, draining=self.draining - {broker})

    def held_back(self, settings: FlappingSettings) -> dict[str, int]:
        """Brokers that came back, to the time they may get bundles; past times included."""
        return {
            broker: losses.joined_ms + round(1000 * _delay(losses.number, settings))
            for broker, losses in self.losses.items()
            if losses.joined_ms is not None
        }

    def out_of_use(self, settings: FlappingSettings, now_ms: int) -> set[str]:
        """Brokers that must not get bundles now: gone, held back or draining."""
        held_back = self.held_back(settings).items()
        return {*self.gone, *self.draining, *(b for b, until in held_back if until > now_ms)}

    def recent(self, settings: FlappingSettings, now_ms: int) -> Liveness:
        """The liveness without losses older than ``settings.forget``."""
        past_ms = now_ms - settings.forget * 1000
        losses = {b: losses for b, losses in self.losses.items() if losses.last_ms >= past_ms}
        return replace(self, losses=losses)

    def without_strangers(self, owners: Collection[str | None], horizon_ms: float) -> Liveness:
        """The liveness without brokers that own nothing and were lost before ``horizon_ms``."""
        gone = {b: ms for b, ms in self.gone.items() if ms >= horizon_ms or b in owners}
        return replace(self, gone=gone)


def heard(appended: Mapping[str, int], paces: Mapping[str, Pace], settings: Settings) -> list[str]:
    """Brokers whose silence is usual, by Kafka's clock: a job's backlog marks no broker silent."""
    newest = max(appended.values(), default=0)
    return sorted(
        broker
        for broker, ms in appended.items()
        if newest - ms <= 1000 * allowed_silence(paces.get(broker), settings.round)
    )


def _delay(losses: int, settings: FlappingSettings) -> float:
    doubled = settings.first_delay * 2.0 ** min(losses - 1, _DOUBLINGS)
    return min(doubled, settings.longest_delay)
