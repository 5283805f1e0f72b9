"""What the script makes of requests about two neighbours: both change, or neither does."""

from __future__ import annotations

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
    job,
    journal,
)
from tests.contracts.conftest import BROKERS
from tests.support.opening import indexed
from trimtab.model import NO_EPOCH, Epoch
from trimtab.ownership import Event, State
from trimtab.wire.command import CommandKind
from trimtab.wire.keys import bundles_key, ownership_key
from trimtab.wire.ownership import Neighbour, Record, Refused, Transition

A, B, _ = BROKERS
LOWER, UPPER = Epoch(3, 7), Epoch(4, 11)
NEXT = Neighbour(ABOVE, UPPER)


def put(
    client: redis.Redis, cluster: str, by: str = "earlier", **states: State | tuple[State, str]
) -> None:
    """Records of ``lower`` and ``upper``, of A unless somebody else is named."""
    for name, given in states.items():
        state, owner = given if isinstance(given, tuple) else (given, A)
        bundle, epoch = (BUNDLE, LOWER) if name == "lower" else (ABOVE, UPPER)
        record = Record(state=state, epoch=epoch, owner=owner, by=by)
        client.hset(ownership_key(cluster), bundle, msgspec.json.encode(record))
        client.zadd(bundles_key(cluster), {bundle: 0})


def retire(**more: object) -> Transition:
    return broker(A, Event.RETIRE, LOWER, **{"neighbour": NEXT, "children": (BOTH,), **more})


def test_two_neighbours_of_one_owner_become_one(
    store: OwnershipStore, client: redis.Redis, cluster: str
) -> None:
    """What they become stands above both, and above its earlier life."""
    put(client, cluster, lower=State.OWNED, upper=State.OWNED)
    earlier = Record(state=State.DELETED, epoch=Epoch(2, 9))
    client.hset(ownership_key(cluster), BOTH, msgspec.json.encode(earlier))

    told = (command(A, CommandKind.MERGE),)
    merging = ask(store, cluster, job(Event.MERGE, LOWER, neighbour=NEXT, commands=told))
    assert merging.accepted
    lower, upper = store.record(cluster, BUNDLE), store.record(cluster, ABOVE)
    assert lower is not None
    assert upper is not None
    assert [(r.state, r.owner, r.by) for r in (lower, upper)] == [(State.MERGING, A, lower.by)] * 2
    assert (lower.epoch, upper.epoch) == (Epoch(GENERATION, 8), Epoch(GENERATION, 12))
    assert [told.epoch for told in commands(client, cluster, A)] == [lower.epoch]

    beside = Neighbour(ABOVE, upper.epoch)
    asked = broker(A, Event.RETIRE, lower.epoch, neighbour=beside, children=(BOTH,))
    assert [ask(store, cluster, asked).accepted for _ in range(2)] == [True, True]

    assert {
        bundle: (r.state, r.owner, r.epoch) for bundle, r in store.records(cluster).items()
    } == {
        BUNDLE: (State.DELETED, None, Epoch(GENERATION, 9)),
        ABOVE: (State.DELETED, None, Epoch(GENERATION, 13)),
        BOTH: (State.OWNED, A, Epoch(GENERATION, 13)),
    }
    assert indexed(client, cluster) == [BOTH]
    assert [(change.event, change.bundle) for change in journal(client, cluster)] == [
        (Event.MERGE, BUNDLE),
        (Event.MERGE, ABOVE),
        (Event.RETIRE, BUNDLE),
        (Event.RETIRE, ABOVE),
        (Event.RETIRE, BOTH),
    ]


def unchanged(
    store: OwnershipStore, client: redis.Redis, cluster: str, asked: Transition
) -> Refused | None:
    """Why it is refused, having changed and told nothing."""
    before, index = store.records(cluster), indexed(client, cluster)
    refused = ask(store, cluster, asked)
    assert not refused.accepted
    assert refused.record == before.get(asked.bundle)
    assert store.records(cluster) == before
    assert indexed(client, cluster) == index
    assert journal(client, cluster) == []
    assert commands(client, cluster, A) == []
    return refused.reason


@pytest.mark.parametrize(
    ("upper", "reason"),
    [
        pytest.param((State.OWNED, B), Refused.NOT_OWNER, id="another owner's"),
        pytest.param(State.RELEASING, Refused.ILLEGAL, id="on its way"),
        pytest.param(State.MERGING, Refused.ILLEGAL, id="being merged with another"),
    ],
)
def test_a_bundle_is_not_merged_with_a_neighbour_that_is(
    store: OwnershipStore,
    client: redis.Redis,
    cluster: str,
    upper: State | tuple[State, str],
    reason: Refused,
) -> None:
    put(client, cluster, lower=State.OWNED, upper=upper)
    asked = job(Event.MERGE, LOWER, neighbour=NEXT, commands=(command(A, CommandKind.MERGE),))
    assert unchanged(store, client, cluster, asked) is reason


def test_a_bundle_without_a_record_is_not_merged(
    store: OwnershipStore, client: redis.Redis, cluster: str
) -> None:
    put(client, cluster, lower=State.OWNED)
    asked = job(Event.MERGE, LOWER, neighbour=Neighbour(ABOVE, NO_EPOCH))
    assert unchanged(store, client, cluster, asked) is Refused.ILLEGAL


@pytest.mark.parametrize("stale", [Epoch(4, 10), Epoch(4, 12), Epoch(3, 11), NO_EPOCH])
def test_the_neighbours_epoch_is_expected_as_well(
    store: OwnershipStore, client: redis.Redis, cluster: str, stale: Epoch
) -> None:
    beside = Neighbour(ABOVE, stale)
    put(client, cluster, lower=State.OWNED, upper=State.OWNED)
    merge = job(Event.MERGE, LOWER, neighbour=beside)
    assert unchanged(store, client, cluster, merge) is Refused.STALE_EPOCH

    put(client, cluster, lower=State.MERGING, upper=State.MERGING)
    assert unchanged(store, client, cluster, retire(neighbour=beside)) is Refused.STALE_EPOCH


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(BUNDLE, id="itself"),
        pytest.param("public/default/0x50000000_0x80000000", id="not beside it"),
        pytest.param("public/other/0x40000000_0x80000000", id="of another namespace"),
        pytest.param("public/default/0x40000000_0x40000000", id="empty"),
        pytest.param("public/default/0x40000000", id="no bundle"),
    ],
)
def test_only_the_bundle_just_above_is_a_neighbour(
    store: OwnershipStore, client: redis.Redis, cluster: str, other: str
) -> None:
    put(client, cluster, lower=State.OWNED, upper=State.OWNED)
    asked = job(Event.MERGE, LOWER, neighbour=Neighbour(other, UPPER))
    assert unchanged(store, client, cluster, asked) is Refused.NOT_TILING
    below = job(Event.MERGE, UPPER, bundle=ABOVE, neighbour=Neighbour(BUNDLE, LOWER))
    assert unchanged(store, client, cluster, below) is Refused.NOT_TILING


def test_a_merge_names_a_neighbour_and_nothing_else_does(
    store: OwnershipStore, client: redis.Redis, cluster: str
) -> None:
    put(client, cluster, lower=State.OWNED, upper=State.OWNED)
    for asked in (job(Event.MERGE, LOWER), job(Event.SPLIT, LOWER, neighbour=NEXT)):
        assert unchanged(store, client, cluster, asked) is Refused.NOT_TILING

    put(client, cluster, lower=State.SPLITTING, upper=State.OWNED)
    for children in (HALVES, (BOTH,)):
        asked = retire(children=children)
        assert unchanged(store, client, cluster, asked) is Refused.NOT_TILING


@pytest.mark.parametrize(
    "children",
    [
        pytest.param((), id="nothing"),
        pytest.param((BUNDLE,), id="the lower one"),
        pytest.param((BUNDLE, ABOVE), id="both as they were"),
        pytest.param((BOTH, BOTH), id="it twice"),
        pytest.param(
            ("public/default/0x00000000_0x60000000", "public/default/0x60000000_0x80000000"),
            id="two others",
        ),
        pytest.param(("public/default/0x00000000_0x90000000",), id="more than both"),
        pytest.param(("public/other/0x00000000_0x80000000",), id="of another namespace"),
    ],
)
def test_what_they_become_is_the_one_that_has_their_range(
    store: OwnershipStore, client: redis.Redis, cluster: str, children: tuple[str, ...]
) -> None:
    put(client, cluster, lower=State.MERGING, upper=State.MERGING)
    asked = retire(children=children)
    assert unchanged(store, client, cluster, asked) is Refused.NOT_TILING


def test_what_stands_already_is_not_made_again(
    store: OwnershipStore, client: redis.Redis, cluster: str
) -> None:
    put(client, cluster, lower=State.MERGING, upper=State.MERGING)
    standing = Record(state=State.OWNED, epoch=Epoch(1, 1), owner=B)
    client.hset(ownership_key(cluster), BOTH, msgspec.json.encode(standing))
    assert unchanged(store, client, cluster, retire()) is Refused.NOT_TILING


@pytest.mark.parametrize(
    ("lower", "upper"),
    [
        pytest.param(State.MERGING, State.OWNED, id="the upper one stayed after all"),
        pytest.param(State.MERGING, (State.MERGING, B), id="the upper one is another's"),
        pytest.param((State.MERGING, B), State.MERGING, id="the lower one is another's"),
    ],
)
def test_both_end_or_neither(
    store: OwnershipStore,
    client: redis.Redis,
    cluster: str,
    lower: State | tuple[State, str],
    upper: State | tuple[State, str],
) -> None:
    put(client, cluster, lower=lower, upper=upper)
    reason = unchanged(store, client, cluster, retire())
    assert reason in (Refused.ILLEGAL, Refused.NOT_OWNER)


@pytest.mark.parametrize(
    "upper",
    [
        pytest.param(State.MERGING, id="merged with another"),
        pytest.param(State.SPLITTING, id="divided"),
    ],
)
def test_what_was_kept_and_is_something_elses_now_is_not_ended(
    store: OwnershipStore, client: redis.Redis, cluster: str, upper: State
) -> None:
    """Its record may be ended, by its owner, and has the epoch that the broker read; but it was not
    made what it is with the lower one."""
    put(client, cluster, lower=State.MERGING)
    put(client, cluster, by="later", upper=upper)
    assert unchanged(store, client, cluster, retire()) is Refused.ILLEGAL


def test_one_may_be_kept_alone_and_the_other_then_declined(
    store: OwnershipStore, client: redis.Redis, cluster: str
) -> None:
    put(client, cluster, lower=State.MERGING, upper=State.MERGING)
    assert ask(store, cluster, job(Event.KEEP, UPPER, bundle=ABOVE)).accepted
    assert ask(store, cluster, retire()).reason is Refused.STALE_EPOCH
    assert ask(store, cluster, broker(A, Event.DECLINE, LOWER)).accepted
    states = {bundle: record.state for bundle, record in store.records(cluster).items()}
    assert states == {BUNDLE: State.OWNED, ABOVE: State.OWNED}
