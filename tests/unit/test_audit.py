"""What the auditor makes of a few changes and commands; each case is one thing gone wrong."""

from __future__ import annotations

import msgspec
import pytest

from trimtab.auditing.auditor import GRACE_MS, QUIET_MS, Audit, Violation, ViolationKind
from trimtab.auditing.rules import CAUSES
from trimtab.model import Epoch
from trimtab.ownership import TRANSITIONS, Event, State
from trimtab.wire.command import Command
from trimtab.wire.command import CommandKind as Order
from trimtab.wire.ownership import Change, Record

LEFT, RIGHT = "t/n/0x00000000_0x80000000", "t/n/0x80000000_0xffffffff"
HALVES = ("t/n/0x00000000_0x40000000", "t/n/0x40000000_0x80000000")
A, B = "a:8080", "b:8080"

SECOND = 1000
LONG = 2 * QUIET_MS


def change(said: str, at: int, bundle: str = LEFT) -> Change:
    """``transfer 1.3 Releasing a:8080 b:8080``, ``at`` so many seconds."""
    event, epoch, state, *names = said.split()
    owner, destination = [*names, None, None][:2]
    generation, counter = map(int, epoch.split("."))
    record = Record(
        state=State(state),
        epoch=Epoch(generation, counter),
        owner=owner,
        destination=destination,
        since=at * SECOND,
        by=f"{bundle} {said}",
    )
    return Change(cluster="c", bundle=bundle, event=Event(event), record=record)


def history(*said: str, bundle: str = LEFT) -> list[Change]:
    """A change a second."""
    return [change(each, at, bundle) for at, each in enumerate(said, 1)]


HANDED_OVER = history(
    f"claim 1.1 Owned {A}",
    f"transfer 1.2 Releasing {A} {B}",
    f"hand-over 1.3 Assigning {B}",
    f"serve 1.4 Owned {B}",
)
WHOLE = [*history(f"claim 1.1 Owned {A}"), change(f"claim 1.1 Owned {B}", 1, RIGHT)]
DIVIDED = [
    change(f"split 1.2 Splitting {A}", 2),
    change("retire 1.3 Deleted", 3),
    *(change(f"retire 1.3 Owned {A}", 3, half) for half in HALVES),
]
BOTH = "t/n/0x00000000_0xffffffff"
HELD = [change(f"claim 1.1 Owned {A}", 1, part) for part in (LEFT, RIGHT)]
MERGED = [
    *(change(f"merge 1.2 Merging {A}", 2, part) for part in (LEFT, RIGHT)),
    *(change("retire 1.3 Deleted", 3, part) for part in (LEFT, RIGHT)),
    change(f"retire 1.3 Owned {A}", 3, BOTH),
]
LONG_LIFE = [
    change(f"{event} 1.{number} {state}", number)
    for number in range(1, 30, 2)
    for event, state, number in (("claim", f"Owned {A}", number), ("release", "Free", number + 1))
]


def transfer(epoch: Epoch, at: int, **more: object) -> Command:
    """Issued ``at`` so many seconds, with ten of them to end in."""
    bare = Command(id="t", cluster="c", broker=A, kind=Order.TRANSFER, bundle=LEFT)
    stamped = bare.stamped(epoch, at * SECOND, (at + 10) * SECOND)
    fields = {field: getattr(stamped, field) for field in stamped.__struct_fields__}
    return Command(**{**fields, **more})


ABOUT_NO_BUNDLE = Command(
    id="m/running/0/2000/a",
    cluster="c",
    broker=A,
    kind=Order.TOPIC_MIGRATED,
    bundle="",
    migration="m",
    issued_at=2 * SECOND,
)


def found(*items: Change | Command, until: int = LONG) -> list[Violation]:
    audit = Audit()
    for item in items:
        if isinstance(item, Change):
            audit.see_change(item)
        else:
            audit.see_command(item)
    return [each for each in audit.settle(until) if each.kind is not ViolationKind.INCOMPLETE]


def kinds(*items: Change | Command, until: int = LONG) -> list[ViolationKind]:
    return [violation.kind for violation in found(*items, until=until)]


@pytest.mark.parametrize(
    "items",
    [
        pytest.param(HANDED_OVER, id="a hand-over"),
        pytest.param([*HANDED_OVER, *HANDED_OVER], id="carried twice"),
        pytest.param(HANDED_OVER[::-1], id="carried in any order"),
        pytest.param(HANDED_OVER[2:], id="the first ones compacted away"),
        pytest.param([*WHOLE, *DIVIDED], id="a division"),
        pytest.param([*WHOLE, *DIVIDED[::-1]], id="a division carried in any order"),
        pytest.param([*HELD, *MERGED], id="a merge"),
        pytest.param([*HELD, *MERGED[::-1]], id="a merge carried in any order"),
        pytest.param(
            [*HELD, *MERGED[:2], change(f"decline 1.3 Owned {A}", 3)],
            id="a merge that came to nothing",
        ),
        pytest.param(
            [*HANDED_OVER, change(f"assign 2.5 Assigning {A}", 20)], id="taken from the dead"
        ),
        pytest.param(
            [*HANDED_OVER[:2], change(f"claim 1.3 Owned {A}", 9)], id="claimed again by its owner"
        ),
        pytest.param(
            [
                *WHOLE,
                change("restore 2.2 Deleted", 0),
                change(f"restore 1.3 Owned {A}", 3, HALVES[0]),
                change("restore 2.3 Free", 0, HALVES[1]),
            ],
            id="a split half forgotten, repaired by the rebuild",
        ),
        pytest.param(
            [*HANDED_OVER[:1], change(f"restore 1.4 Owned {B}", 4)], id="restored past what is lost"
        ),
        pytest.param(
            [
                change("restore 1.2 Deleted", 3),
                *(change(f"restore 1.3 Owned {A}", 3, half) for half in HALVES),
                *WHOLE,
            ],
            id="restored, and carried before what was not lost",
        ),
        pytest.param([*HANDED_OVER, transfer(Epoch(1, 2), 2)], id="a command that ended"),
        pytest.param(
            [*HANDED_OVER[2:], transfer(Epoch(1, 2), 2)], id="a command of a change compacted away"
        ),
        pytest.param([*LONG_LIFE, *LONG_LIFE], id="a long history carried twice"),
        pytest.param([*LONG_LIFE, LONG_LIFE[0]], id="a very old change carried again"),
        pytest.param([transfer(Epoch(1, 2), 2), *HANDED_OVER], id="a command before its change"),
        pytest.param([*HANDED_OVER, ABOUT_NO_BUNDLE], id="a command about no bundle"),
    ],
)
def test_what_keeps_the_rules_is_not_reported(items: list[Change | Command]) -> None:
    assert found(*items) == []


@pytest.mark.parametrize(
    ("items", "kind"),
    [
        pytest.param(
            [*HANDED_OVER, change(f"serve 1.4 Owned {A}", 4)],
            ViolationKind.CONFLICT,
            id="one epoch, twice",
        ),
        pytest.param(
            [*HANDED_OVER[1:], change(f"claim 1.1 Owned {B}", 9)],
            ViolationKind.BACKWARD,
            id="an old epoch",
        ),
        pytest.param(
            [*HANDED_OVER, change("release 0.5 Free", 5)],
            ViolationKind.GENERATION,
            id="an old generation",
        ),
        pytest.param(
            [*HANDED_OVER, change("release 0.4 Free", 5)],
            ViolationKind.CONFLICT,
            id="an old generation that counts from below",
        ),
        pytest.param(
            [*HANDED_OVER[:2], HANDED_OVER[3]], ViolationKind.GAP, id="a change is missing"
        ),
        pytest.param(
            history(f"claim 1.1 Owned {A}", f"hand-over 1.2 Assigning {B}"),
            ViolationKind.STEP,
            id="handed over while serving",
        ),
        pytest.param(history("claim 1.1 Owned"), ViolationKind.STEP, id="owned by no broker"),
        pytest.param(
            [*HANDED_OVER[:2], change("hand-over 1.3 Assigning c:8080", 3)],
            ViolationKind.STEP,
            id="handed over to a third",
        ),
        pytest.param(
            history(f"claim 1.1 Owned {A}", f"transfer 1.2 Releasing {A} {A}"),
            ViolationKind.STEP,
            id="handed over to itself",
        ),
        pytest.param(
            history(f"assign 1.1 Assigning {A}", f"claim 1.2 Owned {B}"),
            ViolationKind.STEP,
            id="claimed from another",
        ),
        pytest.param(
            history(f"claim 1.1 Owned {A}", f"release 1.2 Free {A}"),
            ViolationKind.STEP,
            id="free and owned",
        ),
        pytest.param(
            [*HANDED_OVER, change(f"retire 1.9 Owned {B}", 9)],
            ViolationKind.STEP,
            id="born while it stands",
        ),
        pytest.param(
            history(f"claim 1.1 Owned {A}", f"serve 1.2 Owned {B}"),
            ViolationKind.TWO_OWNERS,
            id="served by two",
        ),
        pytest.param(
            [*WHOLE, *DIVIDED[:3], change(f"retire 1.3 Owned {B}", 3, HALVES[1])],
            ViolationKind.TWO_OWNERS,
            id="a part of another owner's",
        ),
        pytest.param([*WHOLE, *DIVIDED[:3]], ViolationKind.HOLE, id="a part is missing"),
        pytest.param(
            [*WHOLE, *DIVIDED[:3], change(f"retire 1.2 Owned {A}", 3, HALVES[1])],
            ViolationKind.BACKWARD,
            id="a part below the whole",
        ),
        pytest.param(
            [*WHOLE, *MERGED[:1], change(f"merge 1.2 Merging {B}", 2, RIGHT), *MERGED[2:]],
            ViolationKind.TWO_OWNERS,
            id="merged with a bundle of another owner's",
        ),
        pytest.param(
            [
                *HELD,
                *MERGED[:2],
                change("retire 1.3 Deleted", 3),
                *(change(f"retire 1.3 Owned {A}", 3, half) for half in HALVES),
            ],
            ViolationKind.STEP,
            id="divided while it was to be merged",
        ),
        pytest.param(
            [
                *HELD,
                change(f"split 1.2 Splitting {A}", 2, RIGHT),
                MERGED[0],
                *MERGED[2:],
            ],
            ViolationKind.STEP,
            id="merged with one that was being divided",
        ),
        pytest.param(
            [
                *(change(f"claim 1.1 Owned {A}", 1, part) for part in (*HALVES, RIGHT)),
                *(change(f"merge 1.2 Merging {A}", 2, part) for part in (*HALVES, RIGHT)),
                *(change("retire 1.3 Deleted", 3, part) for part in (*HALVES, RIGHT)),
                MERGED[-1],
            ],
            ViolationKind.STEP,
            id="three at once",
        ),
        pytest.param(
            [*HELD, *MERGED[:4]], ViolationKind.HOLE, id="what two were merged to is missing"
        ),
        pytest.param(
            [*HELD, *MERGED[:4], change(f"retire 1.2 Owned {A}", 3, BOTH)],
            ViolationKind.BACKWARD,
            id="merged below the two",
        ),
        pytest.param(
            [*WHOLE, change(f"claim 1.1 Owned {A}", 5, HALVES[0])],
            ViolationKind.OVERLAP,
            id="overlapping",
        ),
        pytest.param(
            [*WHOLE, *DIVIDED, change("restore 1.4 Free", 5)],
            ViolationKind.OVERLAP,
            id="the whole again",
        ),
        pytest.param(
            [*HANDED_OVER[:2], transfer(Epoch(1, 2), 2)],
            ViolationKind.UNANSWERED,
            id="no end to a command",
        ),
        pytest.param(
            [*HANDED_OVER, transfer(Epoch(1, 9), 4)],
            ViolationKind.UNFOUNDED,
            id="a command of no change",
        ),
        pytest.param(
            [*HANDED_OVER, transfer(Epoch(1, 2), 2, generation=2)],
            ViolationKind.GENERATION,
            id="a command of another generation",
        ),
    ],
)
def test_what_breaks_a_rule_is_reported_and_nothing_else(
    items: list[Change | Command], kind: ViolationKind
) -> None:
    assert set(kinds(*items)) == {kind}


LOST_BRANCH = [
    *HANDED_OVER[:2],
    change(f"keep 1.3 Owned {A}", 3),
    change(f"claim 1.4 Owned {A}", 4),
]
WENT_ON = [
    change(f"hand-over 3.3 Assigning {B}", 9),
    change(f"serve 3.4 Owned {B}", 10),
]


@pytest.mark.parametrize(
    ("items", "lost"),
    [
        pytest.param([*LOST_BRANCH, *WENT_ON], 2, id="and its changes came first"),
        pytest.param(
            [*LOST_BRANCH[:2], *WENT_ON, *LOST_BRANCH[2:]],
            2,
            id="and its changes came late",
        ),
        pytest.param(
            [*LOST_BRANCH[:1], change("restore 3.2 Deleted", 0), *LOST_BRANCH[1:2]],
            1,
            id="and the rebuild ended the bundle",
        ),
        pytest.param(
            [*LOST_BRANCH, *WENT_ON, transfer(Epoch(1, 4), 4)],
            2,
            id="and a command of it",
        ),
    ],
)
def test_a_branch_that_the_store_lost_is_a_note(items: list[Change | Command], lost: int) -> None:
    assert kinds(*items) == [ViolationKind.LOST] * lost


def test_two_that_were_merged_have_both_ended() -> None:
    one_stands = [*HELD, *MERGED[:3], MERGED[4]]
    assert set(kinds(*one_stands)) == {ViolationKind.OVERLAP, ViolationKind.STEP}


def test_what_is_missing_may_be_late() -> None:
    audit = Audit()
    for late in (HANDED_OVER[0], HANDED_OVER[3], transfer(Epoch(1, 2), 2)):
        audit.see_change(late) if isinstance(late, Change) else audit.see_command(late)
    assert audit.settle(2 * SECOND + GRACE_MS - 1) == []
    audit.see_change(HANDED_OVER[2])
    audit.see_change(HANDED_OVER[1])
    assert [violation.kind for violation in audit.settle(LONG)] == [ViolationKind.INCOMPLETE]


def test_a_finding_is_told_once() -> None:
    audit = Audit()
    for each in (*WHOLE, *DIVIDED[:3], change(f"transfer 1.9 Releasing {B} {A}", 9, RIGHT)):
        audit.see_change(each)
    assert {each.kind for each in audit.settle(LONG)} == {
        ViolationKind.GAP,
        ViolationKind.HOLE,
        ViolationKind.INCOMPLETE,
    }
    audit.see_change(change("release 1.10 Free", LONG // SECOND, RIGHT))
    audit.see_change(change(f"split 1.4 Splitting {A}", LONG // SECOND, HALVES[0]))
    audit.see_change(change("retire 1.5 Deleted", LONG // SECOND + 1, HALVES[0]))
    assert [each.kind for each in audit.settle(LONG + 2 * GRACE_MS)] == []


def test_records_of_one_rebuild_are_judged_together() -> None:
    """Their times are old, and not those at which the bundles came and went."""
    audit = Audit()
    lost = [
        change("restore 1.3 Deleted", 3),
        change(f"restore 1.5 Owned {B}", 400, HALVES[0]),
        change(f"restore 1.3 Owned {A}", 3, HALVES[1]),
    ]
    for each in WHOLE:
        audit.see_change(each)
    assert audit.settle(audit.clock) == []
    for each in lost:
        audit.see_change(each)
        assert audit.settle(audit.clock) == []
    assert audit.clock == 1 * SECOND
    audit.see_change(change(f"transfer 2.2 Releasing {B} {A}", 500, RIGHT))
    assert audit.settle(audit.clock + GRACE_MS) == []


def test_what_belongs_to_a_late_change_may_be_late_as_well() -> None:
    audit = Audit()
    for each in (*WHOLE, change(f"transfer 1.2 Releasing {B} {A}", 900, RIGHT)):
        audit.see_change(each)
    assert audit.settle(audit.clock) == []
    for each in DIVIDED:
        audit.see_change(each)
        assert audit.settle(audit.clock) == []
    assert audit.settle(audit.clock + GRACE_MS) == []


def test_a_bundle_that_came_and_went_in_a_moment_overlaps_nothing() -> None:
    quarters = ("t/n/0x00000000_0x20000000", "t/n/0x20000000_0x40000000")
    again = [
        change(f"split 1.4 Splitting {A}", 3, HALVES[0]),
        change("retire 1.5 Deleted", 3, HALVES[0]),
        *(change(f"retire 1.5 Owned {A}", 3, quarter) for quarter in quarters),
    ]
    assert found(*WHOLE, *DIVIDED, *again) == []


def test_a_commands_end_may_come_after_what_followed_it() -> None:
    audit = Audit()
    limit = 12 + GRACE_MS // SECOND
    end, next_change = change(f"keep 1.3 Owned {A}", limit), change("release 1.4 Free", limit + 1)
    audit.see_command(transfer(Epoch(1, 2), 2))
    for each in (*HANDED_OVER[:2], next_change, end):
        audit.see_change(each)
    assert audit.settle(limit * SECOND + GRACE_MS) == []


def test_a_command_may_end_a_grace_after_its_deadline_and_not_later() -> None:
    last = 12 + GRACE_MS // SECOND
    started, command = HANDED_OVER[:2], transfer(Epoch(1, 2), 2)
    assert kinds(*started, command, change(f"keep 1.3 Owned {A}", last)) == []
    assert kinds(*started, command, change(f"keep 1.3 Owned {A}", last + 1)) == [
        ViolationKind.UNANSWERED
    ]


def test_who_is_only_told_to_prepare_need_not_answer() -> None:
    prepare = transfer(Epoch(1, 2), 2, kind=Order.PREPARE)
    assert kinds(*HANDED_OVER[:2], prepare) == []


def test_who_is_to_keep_what_it_serves_need_not_answer() -> None:
    """As both of a merge that took too long."""
    kept = [change(f"keep 1.3 Owned {A}", 3, part) for part in (LEFT, RIGHT)]
    own = transfer(Epoch(1, 3), 3, kind=Order.OWN)
    assert kinds(*HELD, *MERGED[:2], *kept, own) == []
    given = transfer(Epoch(1, 3), 3, kind=Order.OWN, broker=B)
    assert kinds(*HANDED_OVER[:3], given) == [ViolationKind.UNANSWERED]


def test_a_command_that_went_with_a_lost_store_is_not_asked_after() -> None:
    """Generation 1 ended at 1.4, in second 4; the store forgot what it did after that."""
    lost = transfer(Epoch(1, 5), 5)
    remembered = change(f"restore 1.2 Owned {B}", 6, RIGHT)
    later = change(f"transfer 2.5 Releasing {B} {A}", 500)
    assert kinds(*HANDED_OVER, lost, remembered, later) == []
    forged = transfer(Epoch(1, 9), 3)
    assert kinds(*HANDED_OVER, forged, later) == [ViolationKind.UNFOUNDED]


def test_a_command_has_its_full_time_again_after_a_rebuild() -> None:
    started, command = HANDED_OVER[:2], transfer(Epoch(1, 2), 2)
    other = change(f"claim 2.1 Owned {B}", 600, RIGHT)
    assert kinds(*started, command, other, change(f"keep 2.3 Owned {A}", 605)) == []
    assert kinds(*started, command, other, until=LONG) == [ViolationKind.UNANSWERED]


def test_what_a_full_journal_left_out_is_not_missed() -> None:
    """The commands of 1.2 and 1.3 and their ends; the newest record comes later, restored."""
    ended = transfer(Epoch(1, 2), 2)
    unknown = transfer(Epoch(1, 3), 3)
    newest = change(f"restore 1.9 Owned {A}", 500)
    later = change(f"transfer 1.10 Releasing {A} {B}", 600)
    assert kinds(*HANDED_OVER[:2], ended, newest, later) == []
    assert kinds(*HANDED_OVER[:1], unknown, newest, later) == []

    audit = Audit()
    for each in (*HANDED_OVER[:1], newest):
        audit.see_change(each)
    between = change(f"serve 1.4 Owned {B}", 4).record
    assert audit.unjournalled("c", {LEFT: between}) == []
    assert [each.kind for each in audit.unjournalled("c", {RIGHT: between})] == [
        ViolationKind.UNJOURNALLED
    ]


def test_a_namespace_that_was_never_covered_is_a_note_after_a_while() -> None:
    audit = Audit()
    audit.see_change(WHOLE[0])
    assert audit.settle(SECOND + QUIET_MS - 1) == []
    [note] = audit.settle(SECOND + QUIET_MS)
    assert (note.kind, note.bundle) == (ViolationKind.INCOMPLETE, "t/n")
    assert "50%" in note.detail
    audit.see_change(WHOLE[1])
    assert audit.settle(LONG) == []


def test_a_violation_tells_the_story_of_its_bundle() -> None:
    [violation] = found(*HANDED_OVER[:2], change(f"serve 1.3 Owned {B}", 3))
    assert str(violation).splitlines() == [
        f"two-owners: c {LEFT}: {A} serves it, then {B}, with no change of owner between",
        f"  claim: 1.1 Owned {A} at 1000 by {LEFT} claim 1.1 Owned {A}",
        f"  transfer: 1.2 Releasing {A} -> {B} at 2000 by {LEFT} transfer 1.2 Releasing {A} {B}",
        f"  serve: 1.3 Owned {B} at 3000 by {LEFT} serve 1.3 Owned {B}",
    ]


def test_redis_is_compared_with_what_is_journalled() -> None:
    audit = Audit()
    for each in HANDED_OVER:
        audit.see_change(each)
    older, newest = HANDED_OVER[2].record, HANDED_OVER[3].record
    foreign = change(f"serve 1.4 Owned {A}", 4).record
    assert audit.behind("c", {LEFT: newest}) == audit.unjournalled("c", {LEFT: newest}) == []
    assert audit.unjournalled("c", {LEFT: older}) == []
    assert [each.kind for each in audit.behind("c", {LEFT: older})] == [ViolationKind.BEHIND]
    assert [each.kind for each in audit.behind("c", {})] == [ViolationKind.BEHIND]
    assert [each.kind for each in audit.unjournalled("c", {LEFT: foreign})] == [
        ViolationKind.UNJOURNALLED
    ]
    assert [each.kind for each in audit.unjournalled("c", {RIGHT: newest})] == [
        ViolationKind.UNJOURNALLED
    ]


def test_redis_may_have_forgotten_what_ended_long_ago() -> None:
    audit = Audit()
    for each in (*WHOLE, *DIVIDED):
        audit.see_change(each)
    records = {each.bundle: each.record for each in (*WHOLE[1:], *DIVIDED[2:])}
    assert [each.kind for each in audit.behind("c", records)] == [ViolationKind.BEHIND]
    audit.see_change(msgspec.structs.replace(DIVIDED[1], pruned=True))
    assert audit.behind("c", records) == []
    assert audit.settle(LONG) == []
    older = records | {LEFT: WHOLE[0].record}
    assert [each.kind for each in audit.behind("c", older)] == [ViolationKind.BEHIND]


def test_the_rules_stated_apart_say_what_the_table_says() -> None:
    """They must change together; of RESTORE the auditor believes anything."""
    table = {
        (before, event, effect.state)
        for before, row in TRANSITIONS.items()
        for event, effect in row.items()
        if event is not Event.RESTORE
    }
    stated = {
        (before, event, after) for (before, after), events in CAUSES.items() for event in events
    }
    assert stated == table
