"""What the transition script accepts, refuses, writes and says."""

from __future__ import annotations

from itertools import pairwise

import msgspec
import pytest
import redis

from sinks.redis.ownership_store import OwnershipStore
from tests.contracts.asking import (
    ABOVE,
    BOTH,
    BUNDLE,
    GENERATION,
    HALVES,
    ask,
    broker,
    command,
    commands,
    entries,
    job,
    journal,
)
from tests.contracts.conftest import BROKERS
from tests.support.opening import indexed, keep_alive
from trimtab.model import NO_EPOCH, Epoch, HashRange, parse_bundle
from trimtab.ownership import (
    BROKER_EVENTS,
    JOB_EVENTS,
    MOST_CHILDREN,
    MOST_FALLS,
    SOON_MS,
    TRANSITIONS,
    Event,
    Given,
    OwnerRule,
    State,
)
from trimtab.wire.command import CommandKind
from trimtab.wire.keys import command_stream, lease_key, ownership_key, placed_key
from trimtab.wire.ownership import Candidate, Neighbour, Record, Refused, Transition

A, B, C = BROKERS
STANDING = Epoch(3, 7)
AFTER = Epoch(GENERATION, 8)

ROWS = [pytest.param(state, event, id=f"{state}-{event}") for state in State for event in Event]
NAMED = {
    OwnerRule.KEEP: (A, None),
    OwnerRule.KEEP_AIM: (A, C),
    OwnerRule.TAKE: (C, None),
    OwnerRule.DESTINATION: (B, None),
    OwnerRule.NOBODY: (None, None),
}
"""Owner and destination afterwards, where A owned, B was the destination and C is asked for."""


def put(client: redis.Redis, cluster: str, state: State, bundle: str = BUNDLE) -> Record:
    record = Record(state=state, epoch=STANDING, owner=A, destination=B, by="earlier")
    if state in {State.FREE, State.DELETED, State.QUARANTINED}:
        record = msgspec.structs.replace(record, owner=None, destination=None)
    client.hset(ownership_key(cluster), bundle, msgspec.json.encode(record))
    return record


@pytest.mark.parametrize(("state", "event"), ROWS)
def test_the_script_accepts_the_rows_of_the_table_and_nothing_else(
    store: OwnershipStore, client: redis.Redis, cluster: str, state: State, event: Event
) -> None:
    before = put(client, cluster, state)
    effect = TRANSITIONS[state].get(event)
    if effect is not None and effect.given is not Given.NOTHING:
        client.delete(lease_key(cluster, A))
    newcomer = (state, event) == (State.FREE, Event.CLAIM)
    actor = None if event in JOB_EVENTS else C if newcomer else A
    merges = event is Event.MERGE or (state, event) == (State.MERGING, Event.RETIRE)
    if merges:
        put(client, cluster, state, ABOVE)
    children = () if event is not Event.RETIRE else (BOTH,) if merges else HALVES
    request = Transition(
        id="now",
        bundle=BUNDLE,
        event=event,
        expect=STANDING,
        broker=C,
        actor=actor,
        neighbour=Neighbour(ABOVE, STANDING) if merges else None,
        children=children,
    )

    outcome = ask(store, cluster, request)

    assert outcome.record == store.record(cluster, BUNDLE)
    if effect is None:
        assert (outcome.accepted, outcome.reason) == (False, Refused.ILLEGAL)
        assert outcome.record == before
        assert journal(client, cluster) == []
        return
    owner, destination = NAMED[effect.owner]
    assert outcome.accepted
    assert outcome.record is not None
    assert outcome.record == Record(
        state=effect.state,
        epoch=AFTER,
        owner=owner,
        destination=destination,
        since=outcome.record.since,
        by="now",
    )
    change, *others = journal(client, cluster)
    assert (change.cluster, change.bundle, change.event) == (cluster, BUNDLE, event)
    assert change.record == outcome.record
    assert [other.bundle for other in others] == [ABOVE] * merges + list(children)


def test_of_two_brokers_that_claim_a_bundle_one_wins(store: OwnershipStore, cluster: str) -> None:
    first = store.apply(cluster, broker(A, Event.CLAIM))
    second = store.apply(cluster, broker(B, Event.CLAIM))

    assert first.accepted
    assert (second.accepted, second.reason) == (False, Refused.STALE_EPOCH)
    assert second.record == first.record == store.record(cluster, BUNDLE)


def test_the_same_request_gets_the_same_answer_and_leaves_one_trace(
    store: OwnershipStore, client: redis.Redis, cluster: str
) -> None:
    claim = broker(A, Event.CLAIM)

    answers = [store.apply(cluster, claim) for _ in range(3)]

    assert answers[0].accepted
    assert answers == [answers[0]] * 3
    assert len(journal(client, cluster)) == 1


@pytest.mark.parametrize(
    "expect", [NO_EPOCH, Epoch(3, 6), Epoch(3, 8), Epoch(2, 7), Epoch(4, 7), Epoch(4, 0)]
)
def test_any_other_epoch_than_the_records_is_stale(
    store: OwnershipStore, client: redis.Redis, cluster: str, expect: Epoch
) -> None:
    before = put(client, cluster, State.OWNED)

    outcome = ask(store, cluster, job(Event.UNLOAD, expect))

    assert (outcome.accepted, outcome.reason) == (False, Refused.STALE_EPOCH)
    assert outcome.record == before


def test_a_record_from_above_the_open_generation_is_not_taken_back(
    store: OwnershipStore, client: redis.Redis, cluster: str
) -> None:
    ahead = Record(state=State.OWNED, epoch=Epoch(GENERATION + 1, 1), owner=A)
    client.hset(ownership_key(cluster), BUNDLE, msgspec.json.encode(ahead))

    assert ask(store, cluster, job(Event.UNLOAD, ahead.epoch)).reason is Refused.STALE_EPOCH


@pytest.mark.parametrize("event", sorted(set(Event) - JOB_EVENTS))
def test_the_job_cannot_speak_for_a_broker(
    store: OwnershipStore, client: redis.Redis, cluster: str, event: Event
) -> None:
    put(client, cluster, State.RELEASING)

    assert ask(store, cluster, job(event, STANDING, A)).reason is Refused.NOT_PERMITTED


@pytest.mark.parametrize("event", sorted(set(Event) - BROKER_EVENTS))
def test_a_broker_cannot_speak_for_the_job(
    store: OwnershipStore, client: redis.Redis, cluster: str, event: Event
) -> None:
    put(client, cluster, State.OWNED)

    assert ask(store, cluster, broker(A, event, STANDING)).reason is Refused.NOT_PERMITTED


@pytest.mark.parametrize(
    ("state", "event"),
    [
        (State.ASSIGNING, Event.SERVE),
        (State.ASSIGNING, Event.DECLINE),
        (State.RELEASING, Event.RELEASE),
        (State.RELEASING, Event.HAND_OVER),
        (State.SPLITTING, Event.DECLINE),
    ],
)
def test_only_the_owner_may_answer(
    store: OwnershipStore, client: redis.Redis, cluster: str, state: State, event: Event
) -> None:
    before = put(client, cluster, state)

    refused = ask(store, cluster, broker(B, event, STANDING))

    assert (refused.accepted, refused.reason) == (False, Refused.NOT_OWNER)
    assert store.record(cluster, BUNDLE) == before
    assert ask(store, cluster, broker(A, event, STANDING)).accepted


def test_a_broker_claims_for_itself_only(store: OwnershipStore, cluster: str) -> None:
    assert store.apply(cluster, broker(A, Event.CLAIM, broker=B)).reason is Refused.NOT_OWNER


def test_no_broker_hands_a_bundle_to_itself(
    store: OwnershipStore, client: redis.Redis, cluster: str
) -> None:
    before = put(client, cluster, State.OWNED)
    assert ask(store, cluster, job(Event.TRANSFER, STANDING, A)).reason is Refused.SAME_BROKER
    assert store.record(cluster, BUNDLE) == before


def test_a_request_that_names_no_new_owner_is_refused(store: OwnershipStore, cluster: str) -> None:
    assert ask(store, cluster, job(Event.ASSIGN, NO_EPOCH)).reason is Refused.NO_BROKER

    epoch = owned_by(store, cluster, A)
    unloading = ask(store, cluster, job(Event.UNLOAD, epoch))
    assert unloading.record is not None
    to_no_broker = broker(A, Event.HAND_OVER, unloading.record.epoch)
    assert ask(store, cluster, to_no_broker).reason is Refused.NO_BROKER


def test_a_broker_may_command_only_the_destination(
    store: OwnershipStore, client: redis.Redis, cluster: str
) -> None:
    put(client, cluster, State.RELEASING)
    own = command(C, CommandKind.OWN)

    outcome = ask(store, cluster, broker(A, Event.HAND_OVER, STANDING, commands=(own,)))

    assert outcome.reason is Refused.NOT_PERMITTED
    assert commands(client, cluster, C) == []


def test_a_transfer_goes_from_owner_to_owner_and_tells_both(
    store: OwnershipStore, client: redis.Redis, cluster: str
) -> None:
    epoch = owned_by(store, cluster, A)

    released = ask(
        store,
        cluster,
        job(
            Event.TRANSFER,
            epoch,
            B,
            commands=(command(A, CommandKind.TRANSFER), command(B, CommandKind.PREPARE)),
            within_ms=30_000,
        ),
    ).record
    assert released is not None
    assert (released.state, released.owner, released.destination) == (State.RELEASING, A, B)
    [told] = commands(client, cluster, A)
    [warned] = commands(client, cluster, B)
    assert (told.kind, warned.kind) == (CommandKind.TRANSFER, CommandKind.PREPARE)
    assert told.epoch == warned.epoch == released.epoch
    assert told.generation == GENERATION
    assert told.issued_at == released.since
    assert told.deadline == released.since + 30_000

    assigned = ask(
        store,
        cluster,
        broker(A, Event.HAND_OVER, told.epoch, commands=(command(B, CommandKind.OWN, told.id),)),
    ).record
    assert assigned is not None
    assert (assigned.state, assigned.owner, assigned.destination) == (State.ASSIGNING, B, None)
    [_, own] = commands(client, cluster, B)
    assert (own.kind, own.epoch, own.deadline) == (CommandKind.OWN, assigned.epoch, 0)

    served = ask(store, cluster, broker(B, Event.SERVE, own.epoch)).record
    assert served is not None
    assert (served.state, served.owner) == (State.OWNED, B)
    assert [change.event for change in journal(client, cluster)] == [
        Event.CLAIM,
        Event.TRANSFER,
        Event.HAND_OVER,
        Event.SERVE,
    ]
    assert [change.record.epoch.counter for change in journal(client, cluster)] == [1, 2, 3, 4]


def test_a_refused_request_sends_no_command(
    store: OwnershipStore, client: redis.Redis, cluster: str
) -> None:
    asked = job(Event.TRANSFER, NO_EPOCH, B, commands=(command(A, CommandKind.TRANSFER),))

    assert ask(store, cluster, asked).reason is Refused.ILLEGAL
    assert commands(client, cluster, A) == []


def test_names_and_numbers_reach_redis_unharmed(
    store: OwnershipStore, client: redis.Redis, cluster: str
) -> None:
    """cjson writes slashes with a backslash, empty lists as {} and long numbers as 1.7e+12."""
    odd = 'a"\\/ü\n:1'
    told = msgspec.structs.replace(command(odd, CommandKind.PREPARE), source="é", reason="a/b\\/c")
    keep_alive(client, cluster, (odd,))
    asked = job(Event.ASSIGN, NO_EPOCH, odd, id=odd, commands=(told,))

    record = ask(store, cluster, asked).record

    assert record is not None
    assert (record.owner, record.by) == (odd, odd)
    assert record.since > 1_700_000_000_000
    assert client.hget(ownership_key(cluster), BUNDLE) == msgspec.json.encode(record)
    [received] = commands(client, cluster, odd)
    assert received == msgspec.structs.replace(
        told, epoch=record.epoch, generation=GENERATION, issued_at=record.since
    )
    [text] = entries(client, command_stream(cluster, odd), b"command")
    assert BUNDLE.encode() in text


def test_a_divided_bundle_lives_on_in_its_children(
    store: OwnershipStore, client: redis.Redis, cluster: str
) -> None:
    """Their epochs stand above the parent's, and above those of an earlier life."""
    put(client, cluster, State.SPLITTING)
    earlier = Record(state=State.DELETED, epoch=Epoch(2, 20))
    client.hset(ownership_key(cluster), HALVES[1], msgspec.json.encode(earlier))

    assert ask(store, cluster, broker(A, Event.RETIRE, STANDING, children=HALVES)).accepted

    records = store.records(cluster)
    assert (records[BUNDLE].state, records[BUNDLE].owner) == (State.DELETED, None)
    assert [(records[half].state, records[half].owner) for half in HALVES] == [(State.OWNED, A)] * 2
    counters = [records[half].epoch.counter for half in HALVES]
    assert counters == [STANDING.counter + 1, 21]


@pytest.mark.parametrize(
    "children",
    [
        pytest.param((), id="none"),
        pytest.param((BUNDLE,), id="itself"),
        pytest.param(HALVES[:1], id="a hole at the end"),
        pytest.param(HALVES[1:], id="a hole at the start"),
        pytest.param(HALVES[::-1], id="out of order"),
        pytest.param((HALVES[0], HALVES[0], HALVES[1]), id="twice"),
        pytest.param((HALVES[0], "public/other/0x20000000_0x40000000"), id="another namespace"),
        pytest.param((HALVES[0], "public/default/0x20000000_0x50000000"), id="beyond the end"),
        pytest.param(
            (HALVES[0], "public/default/0x20000000_0x20000000", HALVES[1]), id="an empty one"
        ),
        pytest.param((HALVES[0], "public/default/0x20000000"), id="no bundle"),
    ],
)
def test_children_tile_their_parent_or_are_refused(
    store: OwnershipStore, client: redis.Redis, cluster: str, children: tuple[str, ...]
) -> None:
    before = put(client, cluster, State.SPLITTING)

    refused = ask(store, cluster, broker(A, Event.RETIRE, STANDING, children=children))

    assert (refused.accepted, refused.reason) == (False, Refused.NOT_TILING)
    assert store.records(cluster) == {BUNDLE: before}


def test_a_step_after_which_the_bundle_goes_on_has_no_children(
    store: OwnershipStore, client: redis.Redis, cluster: str
) -> None:
    """The children would be a second bundle of the same range."""
    before = put(client, cluster, State.SPLITTING)

    refused = ask(store, cluster, broker(A, Event.DECLINE, STANDING, children=HALVES))

    assert (refused.accepted, refused.reason) == (False, Refused.NOT_TILING)
    assert store.records(cluster) == {BUNDLE: before}


def test_more_children_than_one_command_writes_are_refused_before_anything_is_written(
    store: OwnershipStore, client: redis.Redis, cluster: str
) -> None:
    """A script that fails in its middle would leave them in the index."""
    before = put(client, cluster, State.SPLITTING)
    namespace, (low, high) = parse_bundle(BUNDLE)
    edges = [*range(low, low + MOST_CHILDREN + 1), high]
    children = tuple(f"{namespace}/{HashRange(*pair)}" for pair in pairwise(edges))

    refused = ask(store, cluster, broker(A, Event.RETIRE, STANDING, children=children))

    assert (refused.accepted, refused.reason) == (False, Refused.NOT_TILING)
    assert store.records(cluster) == {BUNDLE: before}
    assert indexed(client, cluster) == []


def test_a_child_that_stands_already_is_not_made_again(
    store: OwnershipStore, client: redis.Redis, cluster: str
) -> None:
    put(client, cluster, State.SPLITTING)
    standing = Record(state=State.OWNED, epoch=Epoch(1, 1), owner=B)
    client.hset(ownership_key(cluster), HALVES[0], msgspec.json.encode(standing))

    refused = ask(store, cluster, broker(A, Event.RETIRE, STANDING, children=HALVES))

    assert refused.reason is Refused.NOT_TILING
    assert store.record(cluster, HALVES[0]) == standing


def test_a_bundle_that_ended_does_not_return_beside_its_children(
    store: OwnershipStore, client: redis.Redis, cluster: str
) -> None:
    put(client, cluster, State.SPLITTING)
    divided = ask(store, cluster, broker(A, Event.RETIRE, STANDING, children=HALVES)).record
    assert divided is not None

    refused = ask(store, cluster, job(Event.RESTORE, divided.epoch))

    assert refused.reason is Refused.NOT_TILING
    assert store.record(cluster, BUNDLE) == divided


def test_records_are_read_in_pages(store: OwnershipStore, cluster: str) -> None:
    names = {f"public/default/0x{low:08x}_0x{low + 1:08x}" for low in range(2500)}
    asked = [job(Event.ASSIGN, NO_EPOCH, A, bundle=name, id=name) for name in sorted(names)]
    store.apply_batch(cluster, asked, generation=GENERATION, query_id="q", batch=0)

    records = store.records(cluster)

    assert set(records) == names
    assert {record.by for record in records.values()} == names


def owned_by(store: OwnershipStore, cluster: str, name: str) -> Epoch:
    record = store.apply(cluster, broker(name, Event.CLAIM)).record
    assert record is not None
    return record.epoch


GUARDED = [
    pytest.param(state, event, id=f"{state}-{event}")
    for state, row in TRANSITIONS.items()
    for event, effect in row.items()
    if effect.given is not Given.NOTHING
]


@pytest.mark.parametrize(("state", "event"), GUARDED)
def test_a_bundle_is_not_taken_from_a_broker_that_lives(
    store: OwnershipStore, client: redis.Redis, cluster: str, state: State, event: Event
) -> None:
    before = put(client, cluster, state)

    outcome = ask(store, cluster, job(event, STANDING, C))

    # Who is only assigned does not serve yet, and the job need not wait.
    allowed = TRANSITIONS[state][event].given is Given.OWNER_GONE_OR_JOB
    assert outcome.accepted is allowed
    if not allowed:
        assert (outcome.reason, outcome.record) == (Refused.OWNER_LIVES, before)


@pytest.mark.parametrize("state", [State.ASSIGNING, State.OWNED, State.RELEASING])
def test_a_broker_assigns_what_a_dead_one_had_and_nothing_else(
    store: OwnershipStore, client: redis.Redis, cluster: str, state: State
) -> None:
    put(client, cluster, state)
    asked = broker(B, Event.ASSIGN, STANDING, broker=C, commands=(command(C, CommandKind.OWN),))

    assert ask(store, cluster, asked).reason is Refused.OWNER_LIVES
    client.delete(lease_key(cluster, A))
    taken = ask(store, cluster, asked).record

    assert taken is not None
    assert (taken.state, taken.owner) == (State.ASSIGNING, C)
    assert [told.kind for told in commands(client, cluster, C)] == [CommandKind.OWN]


def test_no_broker_without_a_lease_gets_a_bundle(
    store: OwnershipStore, client: redis.Redis, cluster: str
) -> None:
    client.delete(lease_key(cluster, C))

    assert ask(store, cluster, job(Event.ASSIGN, NO_EPOCH, C)).reason is Refused.NO_LEASE
    assert ask(store, cluster, broker(C, Event.CLAIM)).reason is Refused.NO_LEASE
    epoch = owned_by(store, cluster, A)
    assert ask(store, cluster, job(Event.TRANSFER, epoch, C)).reason is Refused.NO_LEASE


def test_a_bundle_is_not_handed_to_a_destination_that_died_meanwhile(
    store: OwnershipStore, client: redis.Redis, cluster: str
) -> None:
    put(client, cluster, State.RELEASING)
    client.delete(lease_key(cluster, B))

    refused = ask(store, cluster, broker(A, Event.HAND_OVER, STANDING))
    kept = ask(store, cluster, broker(A, Event.DECLINE, STANDING)).record

    assert refused.reason is Refused.NO_LEASE
    assert kept is not None
    assert (kept.state, kept.owner, kept.destination) == (State.OWNED, A, None)


def candidates(*loads: tuple[str, float], bundle: str = BUNDLE, each: float = 0.1) -> Transition:
    """A lookup at A that looks for an owner."""
    return Transition(
        id=f"lookup {bundle} {loads}",
        bundle=bundle,
        event=Event.ASSIGN,
        expect=NO_EPOCH,
        actor=A,
        candidates=tuple(Candidate(*load) for load in loads),
        each=each,
        commands=tuple(command(name, CommandKind.OWN) for name, _ in loads),
    )


def test_a_claim_goes_to_the_less_loaded_candidate_and_tells_only_that_one(
    store: OwnershipStore, client: redis.Redis, cluster: str
) -> None:
    record = ask(store, cluster, candidates((B, 0.5), (C, 0.4))).record

    assert record is not None
    assert (record.state, record.owner) == (State.ASSIGNING, C)
    assert [len(commands(client, cluster, name)) for name in (B, C)] == [0, 1]
    assert client.hgetall(placed_key(cluster)) == {C.encode(): b"1"}


def test_what_was_placed_since_the_hints_counts(store: OwnershipStore, cluster: str) -> None:
    """C is 0.25 better and each bundle adds 0.1: three go to it, then they take turns."""
    names = [f"t/n/0x{low:08x}_0x{low + 1:08x}" for low in range(7)]
    asked = [candidates((B, 0.65), (C, 0.4), bundle=name) for name in names]

    owners = [ask(store, cluster, each).record for each in asked]

    assert [record.owner for record in owners if record is not None] == [C, C, C, B, C, B, C]


def test_a_candidate_without_a_lease_is_passed_over(
    store: OwnershipStore, client: redis.Redis, cluster: str
) -> None:
    client.delete(lease_key(cluster, C))
    record = ask(store, cluster, candidates((B, 0.5), (C, 0.4))).record
    assert record is not None
    assert record.owner == B

    client.delete(lease_key(cluster, B))
    refused = ask(store, cluster, candidates((B, 0.5), (C, 0.4), bundle=HALVES[0]))
    assert refused.reason is Refused.NO_LEASE


def test_a_bundle_whose_owners_die_one_after_another_is_quarantined(
    store: OwnershipStore, client: redis.Redis, cluster: str
) -> None:
    epoch = owned_by(store, cluster, A)
    for number in range(1, MOST_FALLS + 1):
        owner, heir = (A, B) if number % 2 else (B, A)
        keep_alive(client, cluster, (heir,))
        client.delete(lease_key(cluster, owner))
        asked = job(
            Event.ASSIGN, epoch, heir, id=f"{number}", commands=(command(heir, CommandKind.OWN),)
        )
        outcome = ask(store, cluster, asked)
        assert outcome.record is not None
        epoch = outcome.record.epoch
        assert outcome.record.falls == number

    assert (outcome.accepted, outcome.reason) == (False, Refused.QUARANTINED)
    assert outcome.record is not None
    assert (outcome.record.state, outcome.record.owner) == (State.QUARANTINED, None)
    assert ask(store, cluster, asked).reason is Refused.QUARANTINED
    assert journal(client, cluster)[-1].event is Event.QUARANTINE
    assert sum(len(commands(client, cluster, name)) for name in (A, B)) == MOST_FALLS - 1

    readmitted = ask(store, cluster, job(Event.READMIT, epoch)).record
    assert readmitted is not None
    assert (readmitted.state, readmitted.falls) == (State.FREE, 0)


def test_a_lookup_that_asks_again_hears_again_that_the_bundle_is_quarantined(
    store: OwnershipStore, client: redis.Redis, cluster: str
) -> None:
    """Its first answer was lost. The record has its request's id, and is not what it asked for."""
    seconds, _ = client.time()
    fallen = Record(
        state=State.OWNED, epoch=STANDING, owner=A, since=1000 * seconds, falls=MOST_FALLS - 1
    )
    client.hset(ownership_key(cluster), BUNDLE, msgspec.json.encode(fallen))
    client.delete(lease_key(cluster, A))
    asked = msgspec.structs.replace(candidates((B, 0.5)), actor=B, expect=STANDING)

    answers = [store.apply(cluster, asked) for _ in range(2)]

    assert answers[0].reason is Refused.QUARANTINED
    assert answers[1] == answers[0]


@pytest.mark.parametrize(
    ("age_ms", "falls"),
    [
        pytest.param(SOON_MS // 2, 3, id="soon after it got it"),
        pytest.param(2 * SOON_MS, 0, id="long after"),
    ],
)
def test_only_a_death_soon_after_getting_a_bundle_counts(
    store: OwnershipStore, client: redis.Redis, cluster: str, age_ms: int, falls: int
) -> None:
    seconds, _ = client.time()
    record = Record(
        state=State.OWNED, epoch=STANDING, owner=A, since=1000 * seconds - age_ms, falls=2
    )
    client.hset(ownership_key(cluster), BUNDLE, msgspec.json.encode(record))
    client.delete(lease_key(cluster, A))

    after = ask(store, cluster, job(Event.LOSE, STANDING)).record

    assert after is not None
    assert after.falls == falls


def test_a_living_owner_that_hands_a_bundle_over_ends_the_streak(
    store: OwnershipStore, client: redis.Redis, cluster: str
) -> None:
    record = Record(state=State.RELEASING, epoch=STANDING, owner=A, destination=B, falls=2)
    client.hset(ownership_key(cluster), BUNDLE, msgspec.json.encode(record))

    after = ask(store, cluster, broker(A, Event.HAND_OVER, STANDING)).record

    assert after is not None
    assert after.falls == 0


def test_an_owner_may_give_a_bundle_up_unasked(
    store: OwnershipStore, client: redis.Redis, cluster: str
) -> None:
    put(client, cluster, State.OWNED)

    assert ask(store, cluster, broker(B, Event.RELEASE, STANDING)).reason is Refused.NOT_OWNER
    record = ask(store, cluster, broker(A, Event.RELEASE, STANDING)).record

    assert record is not None
    assert (record.state, record.owner) == (State.FREE, None)


def test_the_index_names_the_bundles_that_stand(
    store: OwnershipStore, client: redis.Redis, cluster: str
) -> None:
    owned_by(store, cluster, A)
    assert indexed(client, cluster) == [BUNDLE]

    splitting = ask(store, cluster, job(Event.SPLIT, Epoch(GENERATION, 1))).record
    assert splitting is not None
    ask(store, cluster, broker(A, Event.RETIRE, splitting.epoch, children=HALVES))
    assert indexed(client, cluster) == [*HALVES]


@pytest.mark.parametrize(
    ("standing", "new"),
    [
        pytest.param(BUNDLE, HALVES[0], id="a part of one that stands, at its start"),
        pytest.param(BUNDLE, HALVES[1], id="a part, at its end"),
        pytest.param(HALVES[0], BUNDLE, id="what holds one that stands, at its start"),
        pytest.param(HALVES[1], BUNDLE, id="what holds one, at its end"),
        pytest.param(BUNDLE, "public/default/0x30000000_0x50000000", id="crossing its end"),
    ],
)
def test_a_new_bundle_may_not_overlap_one_that_stands(
    store: OwnershipStore, cluster: str, standing: str, new: str
) -> None:
    assert store.apply(cluster, broker(A, Event.CLAIM, bundle=standing)).accepted

    assert store.apply(cluster, broker(B, Event.CLAIM, bundle=new)).reason is Refused.NOT_TILING

    for other in (f"another/{new}", "public/default/0x70000000_0x80000000"):
        assert store.apply(cluster, broker(B, Event.CLAIM, bundle=other)).accepted
