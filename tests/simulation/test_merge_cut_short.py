"""One merge, cut short wherever it can be, by whatever can: every place with every fault.

The owner of two neighbours is told to merge them. In its turn one of its requests goes wrong, and
before that request or after it something else happens.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Final, TypeVar

import pytest

from simulation.ownership.manager import names_of
from simulation.ownership.network import Killed
from sinks.errors import Closed, StoreUnavailable
from tests.support.ownership_scene import QUARTERS, A, Awry, B, Scene
from trimtab.model import merge_names
from trimtab.ownership import Event
from trimtab.wire.command import CommandKind

T = TypeVar("T")

LOWER, UPPER, BEYOND, LAST = QUARTERS
WHOLE = merge_names(LOWER, UPPER)
REQUESTS: Final = 4
"""Of a turn: the record, the neighbour's, the end of both, the acknowledgement."""
RETIRES: Final = 2


def nothing(_: Awry, ask: Callable[[], T]) -> T:
    return ask()


def lost(_: Awry, ask: Callable[[], T]) -> T:  # noqa: ARG001 - the answer is lost
    raise StoreUnavailable("lost")


def unanswered(_: Awry, ask: Callable[[], T]) -> T:
    ask()
    raise StoreUnavailable("unanswered")


def late(link: Awry, ask: Callable[[], T]) -> T:
    link.clock.later(1.5, ask)
    raise StoreUnavailable("late")


def very_late(link: Awry, ask: Callable[[], T]) -> T:
    link.clock.later(30.0, ask)
    raise StoreUnavailable("very late")


def doubled(_: Awry, ask: Callable[[], T]) -> T:
    ask()
    return ask()


def killed_before(_: Awry, ask: Callable[[], T]) -> T:  # noqa: ARG001 - it is not asked
    raise Killed


def killed_after(_: Awry, ask: Callable[[], T]) -> T:
    ask()
    raise Killed


FAULTS: Final = (
    nothing,
    lost,
    unanswered,
    late,
    very_late,
    doubled,
    killed_before,
    killed_after,
)


# What happens meanwhile


Meanwhile = Callable[[Scene], object]


def then(*steps: Meanwhile) -> Meanwhile:
    def happens(scene: Scene) -> None:
        for step in steps:
            step(scene)

    return happens


def asked(bundle: str, event: Event, told: CommandKind, to: str | None = None) -> Meanwhile:
    return lambda scene: scene.asks(bundle, event, told, to)


def keep(bundle: str) -> Meanwhile:
    return asked(bundle, Event.KEEP, CommandKind.OWN)


def restarted(lost: int | None) -> Meanwhile:
    """The server; without its last changes, or None: without any."""
    return lambda scene: scene.server.restart(lost)


def replaced(scene: Scene) -> None:
    scene.next_job().turn(calm=True)


def carried(entries: int) -> Meanwhile:
    """To Kafka: of the last things that happened."""
    return lambda scene: scene.relays(entries)


def hangs(seconds: float) -> Meanwhile:
    """The broker that is obeying; time passes for the other, and the job."""

    def happens(scene: Scene) -> None:
        scene.hosts[A].hangs_until = math.inf
        scene.passes(seconds)
        scene.hosts[A].hangs_until = 0.0

    return happens


MEANWHILE: Final[dict[str, Meanwhile]] = {
    "nothing": lambda _: None,
    "the lower one is kept": keep(LOWER),
    "the upper one is kept": keep(UPPER),
    "both are kept": then(keep(LOWER), keep(UPPER)),
    "the lower one leaves": then(
        keep(LOWER), asked(LOWER, Event.TRANSFER, CommandKind.TRANSFER, B)
    ),
    "the upper one leaves": then(
        keep(UPPER), asked(UPPER, Event.TRANSFER, CommandKind.TRANSFER, B)
    ),
    "the upper one is divided": then(keep(UPPER), asked(UPPER, Event.SPLIT, CommandKind.SPLIT)),
    "the upper one is merged with the next": then(
        keep(UPPER), asked(UPPER, Event.MERGE, CommandKind.MERGE)
    ),
    "the job is replaced": replaced,
    "the owner hangs": hangs(5.0),
    "the owner hangs beyond its lease": hangs(14.0),
    "the owner hangs beyond the deadline": hangs(25.0),
    "the server restarts": restarted(0),
    "the server forgets the last change": restarted(1),
    "the server forgets the merge": restarted(4),
    "the server forgets everything": restarted(None),
    "the server forgets what Kafka has the beginning of": then(carried(1), restarted(None)),
    "the server forgets what Kafka has not the end of": then(carried(2), restarted(None)),
}


def merging(seed: int, relayed: int) -> Scene:
    """The command waits; of the two journal entries Kafka has ``relayed``."""
    scene = Scene(seed)
    assert scene.asks(LOWER, Event.MERGE, CommandKind.MERGE).accepted
    scene.relays(relayed)
    return scene


CUTS: Final = [
    pytest.param(
        turn,
        meanwhile,
        afterwards,
        everywhere,
        id=f"{name}, {'after' if afterwards else 'before'}{', everywhere' if everywhere else ''}",
        # Before and after by turns: of each half in CI.
        marks=[pytest.mark.slow] if everywhere or afterwards == (turn % 2 == 0) else [],
    )
    for turn, (name, meanwhile) in enumerate(MEANWHILE.items())
    for afterwards in (False, True)
    for everywhere in (False, True)
]
"""What happens meanwhile, before or after the request that goes awry: in a place of each fault, or
in all of its places."""


@pytest.mark.parametrize(("turn", "meanwhile", "afterwards", "everywhere"), CUTS)
def test_a_merge_may_be_cut_short_anywhere(
    turn: int, meanwhile: Meanwhile, afterwards: bool, everywhere: bool
) -> None:
    for number, fault in enumerate(FAULTS):
        for at in range(REQUESTS) if everywhere else [(turn + number) % REQUESTS]:
            scene = merging(seed=at, relayed=at % 3)
            scene.link.turns_awry(at, fault, happening(scene, meanwhile, afterwards))
            scene.ends_well()


@contextmanager
def happening(scene: Scene, meanwhile: Meanwhile, afterwards: bool) -> Iterator[None]:
    with ExitStack() as stack:
        if afterwards:
            stack.callback(_if_possible, meanwhile, scene)
        else:
            _if_possible(meanwhile, scene)
        yield


def _if_possible(meanwhile: Meanwhile, scene: Scene) -> None:
    # Every request is refused while the store is closed.
    with suppress(Closed):
        meanwhile(scene)


@pytest.mark.parametrize("entries", [1, 2])
def test_what_may_be_gone_is_not_served_while_others_may_be_given_what_is_left(
    entries: int,
) -> None:
    """Both have ended, and of that Kafka alone knows, and not all: the rest is anybody's."""
    happens = then(carried(entries), restarted(None))
    for seed in range(8):
        scene = merging(seed, relayed=2)
        scene.link.turns_awry(RETIRES, unanswered, happening(scene, happens, afterwards=True))
        scene.ends_well()


def standing_after(meanwhile: str) -> Sequence[str]:
    """What happens before the broker has read its command."""
    scene = merging(seed=1, relayed=2)
    MEANWHILE[meanwhile](scene)
    scene.ends_well()
    return sorted(scene.standing())


def test_undisturbed_the_two_become_one() -> None:
    assert standing_after("nothing") == sorted([WHOLE, BEYOND, LAST])


@pytest.mark.parametrize("kept", ["the lower one is kept", "the upper one is kept"])
def test_what_was_kept_meanwhile_stays_as_it_is(kept: str) -> None:
    assert standing_after(kept) == sorted(QUARTERS)


def test_a_neighbour_that_is_divided_by_now_is_divided_and_not_merged() -> None:
    """The record of either would be ended by the end of it."""
    halves = names_of("t/n", [0x40000000, 0x60000000, 0x80000000])
    standing = standing_after("the upper one is divided")
    assert standing == sorted([LOWER, *halves, BEYOND, LAST])


def test_a_neighbour_that_is_merged_with_another_by_now_becomes_one_with_that() -> None:
    standing = standing_after("the upper one is merged with the next")
    assert standing == sorted([LOWER, merge_names(UPPER, BEYOND), LAST])
