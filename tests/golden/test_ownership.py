"""Which change of ownership stands, where Pulsar's brokers resolve conflicts between records.

Pulsar's brokers each judge every record they read (ServiceUnitStateDataConflictResolver): by its
version, its ``force`` flag and the brokers it names. Here one script decides, for a request that
names the epoch it was decided on; readers believe the newest epoch. docs/pulsar-differences.md.
"""

from __future__ import annotations

import pytest

from tests.support import clusters
from tests.support.clusters_by_rows import change_row, cluster
from tests.support.granting import disposed
from tests.support.reports import bundle
from trimtab.ownership import TRANSITIONS, Event, Given, OwnerRule, State
from trimtab.plan import ShedWish
from trimtab.reasons import Reason, Rule

BUNDLE = bundle(0)


@pytest.mark.parametrize(
    ("before", "told", "owner"),
    [
        pytest.param([5], 4, "old:1", id="v5, then v4: the old one stands"),
        pytest.param([5], 5, "old:1", id="v5 twice: the first one stands"),
        pytest.param([5], 6, "new:1", id="v5, then v6"),
        pytest.param([5], 7, "new:1", id="v5, then v7: the journal may be compacted"),
        pytest.param([], 2, "new:1", id="v2 first, likewise"),
    ],
)
def test_a_reader_believes_the_newest_record(before: list[int], told: int, owner: str) -> None:
    """Acceptance case E11, as Pulsar on a system topic.

    On its metadata store a gap is refused; so does the script that writes here, for which a request
    must name the epoch that stands (tests/contracts/test_transitions.py).
    """
    it = cluster()
    it.receive([change_row(BUNDLE, "old:1", counter) for counter in before], 0)
    it.receive([change_row(BUNDLE, "new:1", told)], 0)
    assert it.records("t/ns")[BUNDLE].owner == owner


@pytest.mark.parametrize(
    ("state", "event"),
    [
        pytest.param(State.QUARANTINED, Event.CLAIM, id="claimed while it is held back"),
        pytest.param(State.RELEASING, Event.UNLOAD, id="unloaded twice"),
        pytest.param(State.DELETED, Event.CLAIM, id="claimed after a split"),
    ],
)
def test_nothing_is_forced(state: State, event: Event) -> None:
    """Acceptance case E11: Pulsar accepts any next version with ``force``, which is not known here.

    What it serves for has rows of its own: LOSE, KEEP, READMIT, RESTORE.
    """
    assert event not in TRANSITIONS[state]


def test_what_is_served_is_given_away_only_after_its_owner() -> None:
    """Acceptance case E11: the lease says whether a broker may be serving still."""
    assert TRANSITIONS[State.OWNED][Event.ASSIGN].given is Given.OWNER_GONE


@pytest.mark.parametrize(
    ("state", "event", "after"),
    [
        pytest.param(State.OWNED, Event.UNLOAD, State.RELEASING, id="of a, not of b"),
        pytest.param(State.ASSIGNING, Event.SERVE, State.OWNED, id="by a, not by b"),
    ],
)
def test_a_step_cannot_name_another_owner(state: State, event: Event, after: State) -> None:
    """Acceptance case E11: Pulsar compares the brokers of both records, and keeps the old one.

    Here the event says which broker the record names, and these two leave it as it is.
    """
    assert TRANSITIONS[state][event] == (after, OwnerRule.KEEP, Given.NOTHING)


def test_nothing_is_transferred_to_its_owner() -> None:
    """Acceptance case E11: Pulsar keeps the old record; here the round refuses to ask."""
    plan = disposed(
        clusters.cluster(a=0.9, b=0.1), [ShedWish(0, 0, Reason.OVERLOADED, destination=0)]
    )
    assert plan.moves == ()
    assert [refusal.rule for refusal in plan.refusals] == [Rule.SAME_BROKER]


def test_a_bundle_wished_twice_moves_once() -> None:
    wish = ShedWish(0, 0, Reason.OVERLOADED, destination=1)
    plan = disposed(clusters.cluster(a=0.9, b=0.1), [wish, wish])
    assert [move.destination for move in plan.moves] == ["b"]
    assert [refusal.rule for refusal in plan.refusals] == [Rule.TWICE]
