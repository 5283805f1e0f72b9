"""The auditor is silent on every honest history and speaks on every forged one.

Histories are random lives of a cluster, carried as a relay may carry them. Mutations falsify what
happens in a quiet time at their end: two hand-overs and a division, or a merge.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from random import Random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.journals import (
    BROKERS,
    CLUSTER,
    QUARTERS,
    STEPS,
    Item,
    Run,
    World,
    carried,
    change_of,
    changed,
)
from trimtab.auditing.auditor import NOTES, Audit, Violation, ViolationKind
from trimtab.model import Epoch, HashRange, parse_bundle
from trimtab.ownership import Event, State
from trimtab.wire.command import Command
from trimtab.wire.command import CommandKind as Order
from trimtab.wire.ownership import Change, Record

HOUR_MS = 3_600_000

steps = st.tuples(st.sampled_from(sorted(STEPS)), st.integers(0, 7), st.integers(0, 7))
randoms = st.randoms(use_true_random=False)


@st.composite
def worlds(draw: st.DrawFn) -> World:
    world = World()
    for what, which, how in draw(st.lists(steps, max_size=60)):
        world.do(what, which, how)
    return world


def audited(
    items: list[Item], rng: Random, *, passes: float = 0.1
) -> tuple[Audit, list[Violation]]:
    """What a reader of the topics finds that settles every now and then at the journal's end."""
    audit, found = Audit(), []
    for item in items:
        if isinstance(item, Change):
            audit.see_change(item)
        else:
            audit.see_command(item)
        if rng.random() < passes:
            found += audit.settle(audit.clock)
    return audit, found + audit.settle(audit.clock)


def finished(audit: Audit, world: World) -> list[Violation]:
    """What is found long after, by one who also asks Redis which generation is let in."""
    audit.see_open(CLUSTER, world.generation)
    return audit.settle(world.now + HOUR_MS)


def broken(found: list[Violation]) -> list[str]:
    return [str(violation) for violation in found if violation.kind not in NOTES]


@given(worlds(), randoms, st.sampled_from([0.0, 0.1, 1.0]))
def test_an_honest_history_breaks_no_rule(world: World, rng: Random, passes: float) -> None:
    audit, found = audited(carried(world.runs, world.commands, rng), rng, passes=passes)
    assert broken(found) == []

    world.rest()
    audit, found = audited(carried(world.runs, world.commands, rng), rng, passes=passes)
    assert broken(found + finished(audit, world)) == []
    assert audit.behind(CLUSTER, world.records) == []
    assert audit.unjournalled(CLUSTER, world.records) == []


@given(worlds(), st.integers(0, 60), st.integers(1, 60), randoms, st.sampled_from([0.0, 0.1, 1.0]))
def test_a_journal_that_was_full_for_a_while_breaks_no_rule(
    world: World, start: int, length: int, rng: Random, passes: float
) -> None:
    """What it left out comes later, as the newest record of each bundle and in no order."""
    world.rest()
    full = slice(min(start, len(world.runs)), start + length)
    before, after = world.runs[: full.start], world.runs[full.stop :]
    newest = {change.bundle: change for run in world.runs[full] for change in run.changes}
    refilled: list[Item] = [
        msgspec.structs.replace(change, event=Event.RESTORE) for change in newest.values()
    ]
    rng.shuffle(refilled)
    told = [(at, command) for at, command in world.commands if at <= full.start]
    later = [(max(0, at - full.stop), command) for at, command in world.commands if at > full.start]

    items = [*carried(before, told, rng), *refilled, *carried(after, later, rng)]
    audit, found = audited(items, rng, passes=passes)

    assert broken(found + finished(audit, world)) == []
    assert audit.behind(CLUSTER, world.records) == []
    assert audit.unjournalled(CLUSTER, world.records) == []


@dataclass
class History:
    """A life, and a quiet time in which ``moved`` was handed over twice and ``divided`` divided."""

    world: World
    before: int
    """Runs of the life."""
    moved: str
    divided: str

    @property
    def quiet(self) -> list[Run]:
        return self.world.runs[self.before :]

    @property
    def command(self) -> Command:
        """The first hand-over's."""
        return next(
            command
            for _, command in self.world.commands
            if command.bundle == self.moved
            and command.kind is Order.TRANSFER
            and command.generation == self.world.generation
        )

    def changes(self, bundle: str) -> list[Change]:
        """In the quiet time, in order."""
        every = chain.from_iterable(run.changes for run in self.quiet)
        return [change for change in every if change.bundle == bundle]

    def turn(self, make: Callable[[Change], Change | None]) -> None:
        """Have every change of the quiet time read otherwise, or not at all."""
        for run in self.quiet:
            made = [make(change) for change in run.changes]
            run.changes = [change for change in made if change is not None]

    def append(self, change: Change) -> None:
        self.world.runs.append(Run(self.world.now, [change]))


@st.composite
def histories(draw: st.DrawFn) -> History:
    world = draw(worlds())
    world.rest()
    world.now += 120_000
    world.restart()
    before = len(world.runs)
    moved, divided = draw(st.permutations(divisible(world)))[:2]
    how = draw(st.integers(0, 7))
    for _ in range(2):
        world.now += 1000
        world.transfer(moved, how)
        for _ in range(2):
            world.now += 1000
            world.proceed(moved, 0)
    world.split(divided)
    world.now += 1000
    world.retire(divided, how)
    return History(world, before, moved, divided)


def divisible(world: World) -> list[str]:
    """Wide enough for parts that are none of those that there were."""
    spans = {bundle: parse_bundle(bundle)[1] for bundle in world.standing()}
    return [bundle for bundle, span in spans.items() if span.high - span.low > 16]


def parts(history: History) -> list[Change]:
    """The births of the divided bundle's parts, ascending."""
    [run] = [run for run in history.quiet if len(run.changes) > 1]
    return run.changes[1:]


Mutation = Callable[[History], None]


def drop_a_change(history: History) -> None:
    missing = history.changes(history.moved)[2]
    history.turn(lambda change: None if change is missing else change)


def serve_at_the_destination_at_once(history: History) -> None:
    transfer = history.changes(history.moved)[0]
    served = msgspec.structs.replace(
        changed(transfer, state=State.OWNED, owner=transfer.record.destination, destination=None),
        event=Event.SERVE,
    )
    history.turn(lambda change: served if change is transfer else change)


def give_a_part_to_another_broker(history: History) -> None:
    part = parts(history)[0]
    other = next(broker for broker in BROKERS if broker != part.record.owner)
    history.turn(lambda change: changed(change, owner=other) if change is part else change)


def lower_an_epoch(history: History) -> None:
    last = history.changes(history.moved)[-1]
    older = Epoch(last.record.epoch.generation, last.record.epoch.counter - 4)
    history.turn(lambda change: changed(change, epoch=older) if change is last else change)


def begin_an_epoch_below_all(history: History) -> None:
    """More changes follow than a story keeps."""
    first = history.changes(history.moved)[0]
    for _ in range(4):
        history.world.transfer(history.moved, 0)
        history.world.proceed(history.moved, 0)
        history.world.proceed(history.moved, 0)
    history.world.now += 60_000
    history.append(changed(first, since=history.world.now))


def repeat_an_epoch_with_another_record(history: History) -> None:
    last = history.changes(history.moved)[-1]
    history.append(changed(last, owner="d:8080"))


def skip_releasing(history: History) -> None:
    transfer = history.changes(history.moved)[0]

    def skipping(change: Change) -> Change | None:
        if change is transfer:
            return None
        epoch = change.record.epoch
        below = Epoch(epoch.generation, epoch.counter - 1)
        return changed(change, epoch=below) if change.bundle == history.moved else change

    history.turn(skipping)


def drop_a_part(history: History) -> None:
    part = parts(history)[-1].bundle
    history.turn(lambda change: None if change.bundle == part else change)


def keep_the_whole(history: History) -> None:
    """Its end is not journalled."""
    whole = history.divided

    def kept(change: Change) -> Change | None:
        retired = change.bundle == whole and change.event is Event.RETIRE
        return None if retired else change

    history.turn(kept)


def overlap_parts(history: History) -> None:
    last = parts(history)[-1]
    low, high = parse_bundle(last.bundle)[1]
    wider = f"{last.bundle.rsplit('/', 1)[0]}/{HashRange(low - 1, high)}"
    history.turn(
        lambda change: msgspec.structs.replace(change, bundle=wider) if change is last else change
    )


def resurrect_a_deleted_bundle(history: History) -> None:
    history.world.now += 1000
    history.world.claim(history.divided, 1)


def restore_a_deleted_bundle(history: History) -> None:
    whole = history.changes(history.divided)[-1]
    epoch = Epoch(whole.record.epoch.generation, whole.record.epoch.counter + 1)
    record = Record(state=State.FREE, epoch=epoch, since=history.world.now + 1)
    history.append(change_of(Event.RESTORE, history.divided, record))


def be_born_of_nothing(history: History) -> None:
    """A part stands in the place of a bundle that was never divided."""
    part = parts(history)[0]
    epoch = Epoch(part.record.epoch.generation, part.record.epoch.counter + 5)
    history.append(changed(part, epoch=epoch, since=history.world.now + 1))


def lose_a_commands_end(history: History) -> None:
    epoch = history.command.epoch
    ends = [c for c in history.changes(history.moved) if c.record.epoch > epoch]
    history.turn(lambda change: None if change in ends else change)


def end_a_command_late(history: History) -> None:
    epoch = history.command.epoch

    def late(change: Change) -> Change:
        if change.bundle != history.moved or change.record.epoch <= epoch:
            return change
        return changed(change, since=change.record.since + 120_000)

    history.turn(late)
    history.world.now += 120_000


def forge_a_command(history: History) -> None:
    later = Epoch(history.command.generation, history.command.epoch.counter + 100)
    forged = msgspec.structs.replace(history.command, id="forged", epoch=later)
    history.world.commands.append((len(history.world.runs), forged))


def forge_a_command_of_another_generation(history: History) -> None:
    epoch = Epoch(history.world.generation + 1, history.command.epoch.counter)
    forged = msgspec.structs.replace(
        history.command, id="forged", epoch=epoch, generation=epoch.generation
    )
    history.world.commands.append((len(history.world.runs), forged))


def swap_a_commands_generation(history: History) -> None:
    history.world.commands = [
        (
            at,
            msgspec.structs.replace(command, generation=command.generation - 1)
            if command.id == history.command.id
            else command,
        )
        for at, command in history.world.commands
    ]


def swap_a_changes_generation(history: History) -> None:
    middle = history.changes(history.moved)[2]
    older = Epoch(middle.record.epoch.generation - 1, middle.record.epoch.counter)
    history.turn(lambda change: changed(change, epoch=older) if change is middle else change)


MUTATIONS: dict[Mutation, set[ViolationKind]] = {
    drop_a_change: {ViolationKind.GAP},
    serve_at_the_destination_at_once: {ViolationKind.TWO_OWNERS},
    give_a_part_to_another_broker: {ViolationKind.TWO_OWNERS},
    lower_an_epoch: {ViolationKind.CONFLICT},
    begin_an_epoch_below_all: {ViolationKind.BACKWARD},
    repeat_an_epoch_with_another_record: {ViolationKind.CONFLICT},
    skip_releasing: {ViolationKind.STEP},
    drop_a_part: {ViolationKind.HOLE},
    keep_the_whole: {ViolationKind.OVERLAP, ViolationKind.STEP},
    overlap_parts: {ViolationKind.OVERLAP},
    resurrect_a_deleted_bundle: {ViolationKind.STEP, ViolationKind.OVERLAP},
    restore_a_deleted_bundle: {ViolationKind.OVERLAP},
    be_born_of_nothing: {ViolationKind.STEP},
    lose_a_commands_end: {ViolationKind.UNANSWERED},
    end_a_command_late: {ViolationKind.UNANSWERED},
    forge_a_command: {ViolationKind.UNFOUNDED},
    forge_a_command_of_another_generation: {ViolationKind.UNFOUNDED},
    swap_a_commands_generation: {ViolationKind.GENERATION},
    swap_a_changes_generation: {ViolationKind.GENERATION},
}
"""With what must be found, perhaps besides others."""


@given(histories(), randoms)
def test_the_histories_that_are_falsified_break_no_rule(history: History, rng: Random) -> None:
    assert broken(found_in(history, rng)) == []


@pytest.mark.parametrize(
    ("mutation", "kinds"),
    [pytest.param(mutation, kinds, id=mutation.__name__) for mutation, kinds in MUTATIONS.items()],
)
@given(history=histories(), rng=randoms)
def test_every_mutation_is_found(
    mutation: Mutation, kinds: set[ViolationKind], history: History, rng: Random
) -> None:
    mutation(history)
    assert kinds <= {violation.kind for violation in found_in(history, rng)}


@st.composite
def merges(draw: st.DrawFn) -> History:
    """In the quiet time the first two parts of ``divided`` are merged."""
    history = draw(histories())
    world = history.world
    world.now += 120_000
    lower = parts(history)[0].bundle
    before = len(world.runs)
    world.merge(lower)
    world.now += 1000
    world.unite(lower)
    return History(world, before, history.moved, history.divided)


def uniting(history: History) -> list[Change]:
    """The ends of both, and the birth of the whole."""
    return history.quiet[-1].changes


def keep_one_of_two(history: History) -> None:
    _, upper, _ = uniting(history)
    history.turn(lambda change: None if change is upper else change)


def lose_the_whole(history: History) -> None:
    whole = uniting(history)[-1]
    history.turn(lambda change: None if change is whole else change)


def give_the_whole_to_another(history: History) -> None:
    whole = uniting(history)[-1]
    other = next(broker for broker in BROKERS if broker != whole.record.owner)
    history.turn(lambda change: changed(change, owner=other) if change is whole else change)


def merge_below_one_of_two(history: History) -> None:
    lower, _, whole = uniting(history)
    low = Epoch(lower.record.epoch.generation, lower.record.epoch.counter - 1)
    history.turn(lambda change: changed(change, epoch=low) if change is whole else change)


def end_one_of_two_later(history: History) -> None:
    _, upper, _ = uniting(history)
    later = upper.record.since + 1
    history.turn(lambda change: changed(change, since=later) if change is upper else change)


MERGE_MUTATIONS: dict[Mutation, set[ViolationKind]] = {
    keep_one_of_two: {ViolationKind.OVERLAP, ViolationKind.STEP},
    lose_the_whole: {ViolationKind.HOLE},
    give_the_whole_to_another: {ViolationKind.TWO_OWNERS},
    merge_below_one_of_two: {ViolationKind.BACKWARD},
    end_one_of_two_later: {ViolationKind.OVERLAP, ViolationKind.STEP},
}


@given(merges(), randoms)
def test_the_merges_that_are_falsified_break_no_rule(history: History, rng: Random) -> None:
    assert [change.record.state for change in uniting(history)] == [
        State.DELETED,
        State.DELETED,
        State.OWNED,
    ]
    assert broken(found_in(history, rng)) == []


@pytest.mark.parametrize(
    ("mutation", "kinds"),
    [
        pytest.param(mutation, kinds, id=mutation.__name__)
        for mutation, kinds in MERGE_MUTATIONS.items()
    ],
)
@given(history=merges(), rng=randoms)
def test_every_mutation_of_a_merge_is_found(
    mutation: Mutation, kinds: set[ViolationKind], history: History, rng: Random
) -> None:
    mutation(history)
    assert kinds <= {violation.kind for violation in found_in(history, rng)}


def found_in(history: History, rng: Random) -> list[Violation]:
    """The quiet time is carried by a driver of its own: nothing of before comes in the midst of it,
    for what is lost with a store cannot be told from what was forged before the loss."""
    world, before = history.world, history.before
    items = [
        *carried(world.runs[:before], [c for c in world.commands if c[0] <= before], rng),
        *carried(
            world.runs[before:], [(n - before, c) for n, c in world.commands if n > before], rng
        ),
    ]
    audit, found = audited(items, rng)
    return found + finished(audit, world)


@given(histories(), randoms, st.data())
def test_every_foreign_record_in_redis_is_found(
    history: History, rng: Random, data: st.DataObject
) -> None:
    audit, _ = audited(carried(history.world.runs, history.world.commands, rng), rng)
    bundle = data.draw(st.sampled_from(sorted(history.world.records)))
    for foreign in foreigners(history.world.records[bundle]):
        [found] = audit.unjournalled(CLUSTER, {**history.world.records, bundle: foreign})
        assert (found.kind, found.bundle) == (ViolationKind.UNJOURNALLED, bundle)
    stranger = {"t/other/0x00000000_0xffffffff": history.world.records[bundle]}
    assert [found.kind for found in audit.unjournalled(CLUSTER, stranger)] == [
        ViolationKind.UNJOURNALLED
    ]


def foreigners(record: Record) -> Iterator[Record]:
    generation, counter = record.epoch
    yield msgspec.structs.replace(record, owner="z:8080")
    yield msgspec.structs.replace(record, epoch=Epoch(generation, counter + 1))
    yield msgspec.structs.replace(record, epoch=Epoch(generation + 1, counter))


@given(histories(), randoms, st.data())
def test_every_record_that_redis_has_forgotten_is_found(
    history: History, rng: Random, data: st.DataObject
) -> None:
    audit, _ = audited(carried(history.world.runs, history.world.commands, rng), rng)
    bundle = data.draw(st.sampled_from(QUARTERS))
    without = {name: record for name, record in history.world.records.items() if name != bundle}
    record = history.world.records[bundle]
    older = msgspec.structs.replace(
        record, epoch=Epoch(record.epoch.generation, record.epoch.counter - 1)
    )
    for records in (without, {**without, bundle: older}):
        [found] = audit.behind(CLUSTER, records)
        assert (found.kind, found.bundle) == (ViolationKind.BEHIND, bundle)
