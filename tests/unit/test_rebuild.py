"""After a loss the record with the highest epoch holds, from any source."""

from __future__ import annotations

from itertools import pairwise, permutations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.model import FULL_RANGE_END, Epoch, HashRange, merge_names, parse_bundle
from trimtab.ownership import State
from trimtab.store.rebuild import HIGHEST, REACH, doubtful, rebuild_records
from trimtab.tiling import flaws
from trimtab.wire.ownership import Record

X, Y = "t/n/0x00000000_0x80000000", "t/n/0x80000000_0xffffffff"

NEW = 9
"""The generation of the job that rebuilds."""


def record(counter: int, owner: str = "a", generation: int = 1) -> Record:
    return Record(state=State.OWNED, epoch=Epoch(generation, counter), owner=owner)


def test_nothing_is_lacking_where_the_store_is_ahead() -> None:
    done = rebuild_records({X: record(5)}, {X: record(4)}, [{X: record(5)}], NEW)
    assert (done.records, done.unjournalled) == ({}, frozenset())
    assert done.behind == {X}


def test_what_is_restored_is_not_told_to_the_journal_twice() -> None:
    done = rebuild_records({X: record(5)}, {X: record(4)}, [{X: record(6, "b")}], NEW)
    assert done.unjournalled == {X}
    assert done.behind == frozenset()


def test_an_empty_store_gets_the_journal_back() -> None:
    done = rebuild_records({}, {X: record(4), Y: record(2)}, [], NEW)
    assert (done.records, done.unjournalled) == ({X: record(4), Y: record(2)}, frozenset())


def test_a_broker_may_have_seen_more_than_the_journal() -> None:
    done = rebuild_records(
        {X: record(3)}, {X: record(4)}, [{X: record(6, "b")}, {X: record(5)}], NEW
    )
    assert (done.records, done.unjournalled) == ({X: record(6, "b")}, frozenset({X}))


def test_a_higher_generation_outweighs_any_counter() -> None:
    later = record(2, generation=2)
    assert rebuild_records({X: record(9)}, {X: later}, [], NEW).records == {X: later}


def test_the_order_in_which_brokers_speak_does_not_matter() -> None:
    said = [{X: record(1)}, {X: record(3, "b"), Y: record(1)}, {Y: record(2, "c")}]
    results = [rebuild_records({}, {}, order, NEW) for order in permutations(said)]
    assert results == [results[0]] * 6
    assert results[0].records == {X: record(3, "b"), Y: record(2, "c")}


WHOLE = "t/n/0x00000000_0xffffffff"
LOW, MIDDLE = "t/n/0x00000000_0x40000000", "t/n/0x40000000_0x80000000"


def test_a_bundle_that_was_divided_gives_way_to_what_is_known_of_its_parts() -> None:
    """One part is known, by its owner; no broker saw that the bundle was deleted."""
    done = rebuild_records({WHOLE: record(6)}, {}, [{Y: record(7, "b")}], NEW)

    assert {bundle: (r.state, r.owner, r.epoch) for bundle, r in done.records.items()} == {
        WHOLE: (State.DELETED, None, Epoch(NEW, 7)),
        X: (State.FREE, None, Epoch(NEW, 8)),
        Y: (State.OWNED, "b", Epoch(1, 7)),
    }
    assert done.unjournalled == {WHOLE, X, Y}


def test_a_part_that_turns_up_late_gives_way_to_the_bundle_that_was_used_since() -> None:
    later = record(6, generation=2)
    done = rebuild_records({WHOLE: later}, {}, [{Y: record(7, "b")}], NEW)
    assert {bundle: r.state for bundle, r in done.records.items()} == {Y: State.DELETED}


def test_what_is_left_bare_gets_an_epoch_above_its_earlier_life() -> None:
    deleted = Record(state=State.DELETED, epoch=Epoch(1, 40))
    done = rebuild_records({WHOLE: record(6), X: deleted}, {}, [{Y: record(7)}], NEW)
    assert (done.records[X].state, done.records[X].epoch) == (State.FREE, Epoch(NEW, 41))


def test_several_gaps_become_several_bundles() -> None:
    done = rebuild_records({WHOLE: record(6)}, {}, [{MIDDLE: record(7)}], NEW)
    states = {bundle: r.state for bundle, r in done.records.items()}
    assert states == {
        WHOLE: State.DELETED,
        LOW: State.FREE,
        MIDDLE: State.OWNED,
        Y: State.FREE,
    }


def test_a_bundle_whose_parts_are_unknown_becomes_one_again() -> None:
    deleted = Record(state=State.DELETED, epoch=Epoch(1, 6))
    done = rebuild_records({X: deleted, Y: record(3)}, {}, [], NEW)
    assert {b: (r.state, r.epoch) for b, r in done.records.items()} == {
        X: (State.FREE, Epoch(NEW, 7))
    }


@given(
    cuts=st.lists(st.integers(1, FULL_RANGE_END - 1), min_size=1, max_size=6, unique=True),
    lost=st.sets(st.integers(0, 6)),
    forgotten=st.booleans(),
)
def test_whatever_is_lost_of_a_division_what_comes_back_tiles(
    cuts: list[int], lost: set[int], forgotten: bool
) -> None:
    """A bundle was divided; some of its parts, and perhaps its end, are not known."""
    edges = [0, *sorted(cuts), FULL_RANGE_END]
    parts = [f"t/n/{HashRange(*pair)}" for pair in pairwise(edges)]
    parent = record(6) if forgotten else Record(state=State.DELETED, epoch=Epoch(1, 7))
    known = {part: record(8) for number, part in enumerate(parts) if number not in lost}

    done = rebuild_records({WHOLE: parent}, {}, [known], NEW)

    after = {WHOLE: parent, **known, **done.records}
    assert flaws(b for b, r in after.items() if r.state is not State.DELETED) == []
    assert known.items() <= after.items()


@given(ends=st.tuples(st.booleans(), st.booleans()), whole=st.booleans())
def test_whatever_is_lost_of_a_merge_what_comes_back_tiles(
    ends: tuple[bool, bool], whole: bool
) -> None:
    """X and Y were merged; of their ends and of the whole some are not known."""
    merging = Record(state=State.MERGING, epoch=Epoch(1, 6), owner="a")
    ended = Record(state=State.DELETED, epoch=Epoch(1, 7))
    parts = {name: ended if known else merging for name, known in zip((X, Y), ends, strict=True)}
    known = {WHOLE: record(7)} if whole else {}

    done = rebuild_records(parts, known, [{X: record(5)}], NEW)

    after = {**parts, **known, **done.records}
    standing = {b: r for b, r in after.items() if r.state is not State.DELETED}
    assert flaws(standing) == []
    # The owner of the whole goes on; what had not ended stays with its owner.
    if whole:
        assert standing == known
    else:
        assert {b: r for b, r in parts.items() if r == merging}.items() <= standing.items()


FORGED = Record(state=State.OWNED, epoch=Epoch(9_000_000_000_000_000, 1), owner="thief")
NO_RANGE = "t/n/0x00000000_x"


def test_a_record_of_a_higher_generation_asks_for_one_above_it() -> None:
    """Claims were lost with their topic, the store was emptied: only brokers remember."""
    later = record(3, generation=NEW + 50)
    assert rebuild_records({}, {X: record(2)}, [{Y: later}], NEW).newest_generation == NEW + 50
    assert rebuild_records({}, {X: record(2)}, [{Y: later}], NEW + 51).records == {
        X: record(2),
        Y: later,
    }
    # Epochs of this very generation may have been given out by another job.
    assert rebuild_records({X: record(3, generation=NEW)}, {}, [], NEW).newest_generation == NEW
    assert rebuild_records({}, {}, [], NEW).newest_generation == 0


@pytest.mark.parametrize(
    "epoch",
    [
        pytest.param(Epoch(NEW + REACH + 1, 1), id="a generation out of reach"),
        pytest.param(Epoch(9_000_000_000_000_000, 1), id="a generation near the end of numbers"),
        pytest.param(Epoch(1, HIGHEST), id="a counter after which few can follow"),
    ],
)
@pytest.mark.parametrize("source", ["store", "journal", "brokers"])
def test_what_no_job_can_have_given_out_counts_for_nothing(epoch: Epoch, source: str) -> None:
    forged = {X: msgspec.structs.replace(FORGED, epoch=epoch)}
    known = {X: record(4), Y: record(2)}
    done = {
        "store": lambda: rebuild_records(forged, known, [], NEW),
        "journal": lambda: rebuild_records(known, forged, [], NEW),
        "brokers": lambda: rebuild_records(known, {}, [forged], NEW),
    }[source]()
    after = known | done.records
    assert after == known
    assert done.newest_generation == 1
    assert list(doubtful(forged, NEW)) == [X]
    assert doubtful(known, NEW) == {}


@pytest.mark.parametrize(
    "odd",
    [
        pytest.param(Record(state=State.OWNED, epoch=Epoch(1, -3), owner="a"), id="counter"),
        pytest.param(Record(state=State.OWNED, epoch=Epoch(-1, 3), owner="a"), id="generation"),
        pytest.param(Record(state=State.OWNED, epoch=Epoch(1, 3), owner="a", since=-1), id="time"),
        pytest.param(
            Record(state=State.OWNED, epoch=Epoch(1, 3), owner="a", since=1 << 60), id="late"
        ),
    ],
)
def test_what_the_journal_would_not_carry_counts_for_nothing(odd: Record) -> None:
    assert rebuild_records({}, {Y: record(2)}, [{X: odd}], NEW).records == {Y: record(2)}
    assert list(doubtful({X: odd}, NEW)) == [X]


def test_what_is_just_within_reach_is_believed() -> None:
    far = {X: record(1, generation=NEW + REACH), Y: record(HIGHEST - 1)}
    assert rebuild_records({}, far, [], NEW).records == far


@pytest.mark.parametrize("journalled", [{}, {Y: record(2)}])
def test_a_bundle_whose_stored_record_cannot_be_believed_becomes_a_free_one(
    journalled: dict[str, Record],
) -> None:
    for done in (
        rebuild_records({X: FORGED}, journalled, [], NEW),
        rebuild_records({}, journalled, [], NEW, unreadable=[X]),
    ):
        assert done.records[X].state is State.FREE
        assert done.records[X].epoch.generation == NEW
        assert done.records.keys() == {X} | journalled.keys()
        assert X in done.unjournalled


def test_where_it_would_overlap_what_is_believed_it_ends() -> None:
    done = rebuild_records({WHOLE: FORGED, X: record(3), Y: record(3)}, {}, [], NEW)
    assert {b: r.state for b, r in done.records.items()} == {WHOLE: State.DELETED}


@pytest.mark.parametrize("name", [NO_RANGE, "", "t/n/0x80000000_0x00000000", "\ud800", "t/n"])
def test_a_name_that_is_no_range_never_enters(name: str) -> None:
    odd = {name: record(3)}
    for done in (
        rebuild_records(odd, {X: record(1)}, [], NEW),
        rebuild_records({}, {X: record(1), **odd}, [], NEW),
        rebuild_records({}, {X: record(1)}, [odd], NEW),
        rebuild_records({}, {X: record(1)}, [], NEW, unreadable=[name]),
    ):
        assert done.records == {X: record(1)}
    assert list(doubtful(odd, NEW)) == [name]


BROKERS = ("a", "b", "c")


class Past:
    """Bundles that were moved, divided and merged; what each broker saw of that."""

    def __init__(self) -> None:
        self.log: list[tuple[str, Record]] = []
        self.seen: dict[str, dict[str, Record]] = {name: {} for name in BROKERS}
        self.generation = 1
        self._write("a", {WHOLE: record(1)})

    @property
    def newest(self) -> dict[str, Record]:
        return dict(self.log)

    def standing(self) -> list[str]:
        return sorted(b for b, r in self.newest.items() if r.state is State.OWNED)

    def move(self, bundle: str, to: str) -> None:
        gone, came = self.newest[bundle].owner, self._next(bundle, State.OWNED, to)
        self._write(gone, {bundle: came})
        self._write(to, {bundle: came})

    def divide(self, bundle: str) -> None:
        namespace, (low, high) = parse_bundle(bundle)
        middle = (low + high) // 2
        halves = [f"{namespace}/{HashRange(*part)}" for part in ((low, middle), (middle, high))]
        self._become([bundle], halves, State.SPLITTING)

    def merge(self, lower: str, upper: str) -> None:
        owner = self.newest[lower].owner
        assert owner is not None
        if self.newest[upper].owner != owner:
            self.move(upper, owner)
        self._become([lower, upper], [merge_names(lower, upper)], State.MERGING)

    def _become(self, old: list[str], new: list[str], under_way: State) -> None:
        owner = self.newest[old[0]].owner
        self._write(owner, {bundle: self._next(bundle, under_way, owner) for bundle in old})
        above = max(self.newest[bundle].epoch.counter for bundle in old)
        ends = {bundle: self._next(bundle, State.DELETED, None) for bundle in old}
        born = {bundle: self._next(bundle, State.OWNED, owner, above) for bundle in new}
        self._write(owner, ends | born)

    def _next(self, bundle: str, state: State, owner: str | None, above: int = 0) -> Record:
        known = self.newest.get(bundle)
        counter = 1 + max(above, known.epoch.counter if known else 0)
        return Record(state=state, epoch=Epoch(self.generation, counter), owner=owner)

    def _write(self, witness: str | None, records: dict[str, Record]) -> None:
        self.log += records.items()
        if witness is not None:
            self.seen[witness] |= records


@st.composite
def pasts(draw: st.DrawFn) -> Past:
    past = Past()
    kinds = st.sampled_from(["move", "divide", "divide", "merge", "merge", "job"])
    for kind, which in draw(st.lists(st.tuples(kinds, st.integers(0)), max_size=25)):
        names = past.standing()
        bundle = names[which % len(names)]
        if kind == "job":
            past.generation += 1
        elif kind == "move":
            past.move(bundle, BROKERS[which % 3])
        elif kind == "divide":
            past.divide(bundle)
        elif bundle != names[-1]:
            past.merge(bundle, names[which % len(names) + 1])
    return past


@given(past=pasts(), kept=st.integers(0), carried=st.integers(0), living=st.sets(st.integers(0, 2)))
def test_what_a_living_broker_serves_stays_its_own_whatever_was_divided_and_merged(
    past: Past, kept: int, carried: int, living: set[int]
) -> None:
    """The store has the first changes, the journal perhaps more of them or fewer."""
    stored, journal = (dict(past.log[: 1 + much % len(past.log)]) for much in (kept, carried))
    alive = {BROKERS[number] for number in living}

    done = rebuild_records(
        stored, journal, [past.seen[name] for name in alive], past.generation + 1
    )

    after = {**stored, **done.records}
    standing = [b for b, r in after.items() if r.state is not State.DELETED]
    assert flaws(standing) == []
    served = {b: r for b, r in past.newest.items() if r.owner in alive}
    assert served.items() <= after.items()


def test_bundles_that_only_leave_holes_are_not_merged() -> None:
    """A namespace whose brokers are claiming it for the first time."""
    assert rebuild_records({LOW: record(1)}, {}, [{Y: record(1)}], NEW).records == {Y: record(1)}


BETWEEN = "t/n/0x1/0x00000000_0xffffffff"
"""Of the namespace t/n/0x1, and by name between the bundles of t/n."""


def test_a_bundle_of_a_longer_namespace_makes_no_hole_in_a_shorter_one() -> None:
    ended = Record(state=State.DELETED, epoch=Epoch(1, 1))
    stored = {WHOLE: ended, X: record(2), Y: record(2, "b"), BETWEEN: record(1)}

    assert rebuild_records(stored, stored, [], NEW).records == {}


def test_a_bundle_of_a_longer_namespace_hides_no_overlap_in_a_shorter_one() -> None:
    stored = {X: record(1), BETWEEN: record(1)}
    upper = "t/n/0x40000000_0xffffffff"

    done = rebuild_records(stored, {}, [{upper: record(2, "b")}], NEW)

    assert done.records[X].state is State.DELETED
    assert done.records[upper] == record(2, "b")
