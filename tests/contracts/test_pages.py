"""A batch larger than one step of the server: in pages, each applied once, come what may."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, repeat
from typing import Any, Final

import msgspec
import pytest
import redis

from sinks.errors import Closed, Fenced, StoreUnavailable
from sinks.redis import ownership_store
from sinks.redis.command_streams import KEPT_S
from sinks.redis.ownership_store import PAGE, BatchOutcome, OwnershipStore
from tests.contracts.asking import (
    BUNDLE,
    GENERATION,
    broker,
    command,
    commands,
    entries,
    job,
    journal,
)
from tests.support.opening import close, let_in, let_lapse, server_ms
from tests.support.reports import bundle
from trimtab.model import NO_EPOCH, Epoch
from trimtab.ownership import Event
from trimtab.wire import keys
from trimtab.wire.command import CommandKind
from trimtab.wire.ownership import Refused, Transition

A: Final = "a:8080"
B: Final = "b:8080"
PAGES: Final = 3
MANY: Final = 2 * PAGE + 10
"""Transitions of PAGES pages."""


def assignments(number: int = MANY, name: str = "7") -> list[Transition]:
    return [
        job(
            Event.ASSIGN,
            NO_EPOCH,
            A,
            id=f"{name}/{i}",
            bundle=bundle(i, 1024),
            commands=(command(A, CommandKind.OWN, f"{name}/{i}"),),
        )
        for i in range(number)
    ]


def run(
    store: OwnershipStore, cluster: str, batch: int, asked: Sequence[Transition], query: str = "q"
) -> BatchOutcome:
    return store.apply_batch(cluster, asked, generation=GENERATION, query_id=query, batch=batch)


class Watched(redis.Redis):
    """Counts the transitions of each script run; after ``most`` runs its answers are lost."""

    def __init__(self, client: redis.Redis, most: int = 1000) -> None:
        super().__init__(connection_pool=client.connection_pool)
        self.most, self.pages = most, list[int]()

    def evalsha(self, sha: str, numkeys: int, *arguments: Any) -> Any:
        self.pages.append(len(msgspec.json.decode(arguments[numkeys])["requests"]))
        answer = super().evalsha(sha, numkeys, *arguments)
        if len(self.pages) > self.most:
            raise redis.ConnectionError("lost")
        return answer


def interrupted(client: redis.Redis, cluster: str, pages: int) -> None:
    """Batch 7 by a job that dies after so many pages and one whose answer it never got."""
    with pytest.raises(StoreUnavailable):
        run(OwnershipStore(Watched(client, pages)), cluster, 7, assignments())


def fields(client: redis.Redis, cluster: str) -> set[str]:
    """Of what is remembered of batches."""
    # Any: redis-py's answers are unions over protocols; ours is RESP2, bytes.
    found: Any = client.hkeys(keys.applied_key(cluster))
    return {name.decode() for name in found}


def test_no_script_run_has_more_than_a_page(
    store: OwnershipStore, client: redis.Redis, cluster: str
) -> None:
    run(store, cluster, 6, [])
    watched = Watched(client)

    done = run(OwnershipStore(watched), cluster, 7, assignments())

    assert watched.pages == [PAGE, PAGE, 10]
    assert [outcome.id for outcome in done.outcomes] == [f"7/{i}" for i in range(MANY)]
    assert all(outcome.accepted for outcome in done.outcomes)
    assert not done.repeated


@pytest.mark.parametrize("pages", range(PAGES))
def test_a_batch_interrupted_between_its_pages_is_applied_once(
    store: OwnershipStore, client: redis.Redis, cluster: str, pages: int
) -> None:
    interrupted(client, cluster, pages)

    done = run(store, cluster, 7, assignments())

    assert [outcome.id for outcome in done.outcomes] == [f"7/{i}" for i in range(MANY)]
    assert all(outcome.accepted for outcome in done.outcomes)
    assert done.repeated
    assert len(journal(client, cluster)) == len(commands(client, cluster, A)) == MANY
    assert run(store, cluster, 7, assignments()) == done
    assert len(journal(client, cluster)) == MANY


def test_what_changed_since_the_first_run_of_a_page_does_not_change_its_outcome(
    store: OwnershipStore, client: redis.Redis, cluster: str
) -> None:
    """The records would tell that the first page's requests are stale by now."""
    interrupted(client, cluster, 1)
    first = assignments()[0]
    store.apply(cluster, serving(first, store, cluster))

    done = run(store, cluster, 7, assignments())

    assert all(outcome.accepted for outcome in done.outcomes)


def serving(asked: Transition, store: OwnershipStore, cluster: str) -> Transition:
    record = store.record(cluster, asked.bundle)
    assert record is not None
    return Transition(
        id="serve", bundle=asked.bundle, event=Event.SERVE, expect=record.epoch, actor=A
    )


def test_the_next_job_goes_on_where_the_one_before_was_fenced(
    store: OwnershipStore, client: redis.Redis, cluster: str
) -> None:
    interrupted(client, cluster, 1)
    let_in(client, cluster, GENERATION + 1)
    with pytest.raises(Fenced):
        run(store, cluster, 7, assignments())

    done = store.apply_batch(
        cluster, assignments(), generation=GENERATION + 1, query_id="q", batch=7
    )

    assert [outcome.accepted for outcome in done.outcomes] == [True] * MANY
    assert len(journal(client, cluster)) == MANY


def test_a_store_that_was_closed_between_pages_is_gone_on_with(
    store: OwnershipStore, client: redis.Redis, cluster: str
) -> None:
    interrupted(client, cluster, 1)
    close(client, cluster)
    with pytest.raises(Closed):
        run(store, cluster, 7, assignments())
    let_in(client, cluster, GENERATION + 1)

    done = store.apply_batch(
        cluster, assignments(), generation=GENERATION + 1, query_id="q", batch=7
    )

    assert [outcome.accepted for outcome in done.outcomes] == [True] * MANY
    assert len(journal(client, cluster)) == MANY


def test_a_store_that_forgot_the_first_pages_asks_for_the_whole_batch_again(
    store: OwnershipStore, client: redis.Redis, cluster: str
) -> None:
    """After a failover that lost them; the records tell what is done already."""
    forgetful = Forgetful(client, keys.applied_key(cluster))
    with pytest.raises(Closed, match="first page"):
        run(OwnershipStore(forgetful), cluster, 7, assignments())
    assert len(journal(client, cluster)) == PAGE

    done = run(store, cluster, 7, assignments())

    assert all(outcome.accepted for outcome in done.outcomes)
    assert len(journal(client, cluster)) == MANY


class Forgetful(Watched):
    """Loses a key after the first run."""

    def __init__(self, client: redis.Redis, key: str) -> None:
        super().__init__(client)
        self._key = key

    def evalsha(self, sha: str, numkeys: int, *arguments: Any) -> Any:
        answer = super().evalsha(sha, numkeys, *arguments)
        if len(self.pages) == 1:
            self.delete(self._key)
        return answer


def test_a_stream_of_commands_ends_a_day_after_the_last_one(
    store: OwnershipStore, client: redis.Redis, cluster: str
) -> None:
    stream = keys.command_stream(cluster, A)
    run(store, cluster, 6, assignments(1, "6"))
    client.expire(stream, 10)

    asked = msgspec.structs.replace(assignments(2)[1], id="7")
    run(store, cluster, 7, [asked])

    assert KEPT_S - 10 < client.ttl(stream) <= KEPT_S


def test_a_stream_of_commands_with_most_of_its_time_left_is_not_renewed(
    store: OwnershipStore, client: redis.Redis, cluster: str
) -> None:
    # A write of its expiry with each command costs the server more than a look.
    stream = keys.command_stream(cluster, A)
    run(store, cluster, 6, assignments(1, "6"))
    client.expire(stream, KEPT_S - 1000)

    asked = msgspec.structs.replace(assignments(2)[1], id="7")
    run(store, cluster, 7, [asked])

    assert client.ttl(stream) <= KEPT_S - 1000


def test_a_stream_of_commands_without_a_reader_stops_growing(
    store: OwnershipStore, client: redis.Redis, cluster: str
) -> None:
    stream, far_too_many = keys.command_stream(cluster, A), 12_000
    more = "for _ = 1, ARGV[1] do redis.call('XADD', KEYS[1], '*', 'command', '{}') end"
    client.eval(more, 1, stream, str(far_too_many))

    run(store, cluster, 7, assignments(1))

    # Trimmed by the hundred.
    assert client.xlen(stream) in range(10_000, 10_200)
    assert entries(client, stream, b"command")[-1] != b"{}"


def test_the_callers_clock_goes_on_from_page_to_page(
    store: OwnershipStore, client: redis.Redis, cluster: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a lost broker had is taken only by a caller who knows the server's time."""
    claims = [broker(A, Event.CLAIM, id=f"6/{i}", bundle=bundle(i, 1024)) for i in range(MANY)]
    assert all(outcome.accepted for outcome in store.apply_all(cluster, claims))
    let_lapse(client, cluster, A)
    taken = [
        job(Event.ASSIGN, Epoch(GENERATION, 1), B, id=f"7/{i}", bundle=bundle(i, 1024))
        for i in range(MANY)
    ]
    ten_seconds_on = chain([0.0, 0.0], repeat(10.0))
    monkeypatch.setattr(ownership_store, "monotonic", lambda: next(ten_seconds_on))

    done = OwnershipStore(client).apply_batch(
        cluster,
        taken,
        generation=GENERATION,
        query_id="q",
        batch=7,
        server_ms=server_ms(client) - 10_000,
    )

    reasons = [outcome.reason for outcome in done.outcomes]
    assert reasons == [Refused.CLOCK_IN_DOUBT] * PAGE + [None] * (MANY - PAGE)


def test_an_older_batch_of_many_pages_is_refused_as_a_whole(
    store: OwnershipStore, client: redis.Redis, cluster: str
) -> None:
    run(store, cluster, 8, assignments(1, "8"))

    done = run(store, cluster, 7, assignments())

    assert [outcome.reason for outcome in done.outcomes] == [Refused.OLDER_BATCH] * MANY
    assert not done.repeated
    assert len(journal(client, cluster)) == 1


def test_a_batch_that_differs_on_its_second_page_is_refused_as_a_whole(
    store: OwnershipStore, client: redis.Redis, cluster: str
) -> None:
    """Of a copied checkpoint, which went on counting by itself."""
    run(store, cluster, 7, assignments(PAGE))

    done = run(store, cluster, 7, assignments())

    assert [outcome.reason for outcome in done.outcomes] == [Refused.OLDER_BATCH] * MANY
    assert len(journal(client, cluster)) == PAGE


def test_a_version_with_other_pages_repeats_a_batch_too(
    store: OwnershipStore, client: redis.Redis, cluster: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupted(client, cluster, 1)
    monkeypatch.setattr(ownership_store, "PAGE", PAGE - 30)

    done = run(store, cluster, 7, assignments())

    assert [outcome.id for outcome in done.outcomes] == [f"7/{i}" for i in range(MANY)]
    assert all(outcome.accepted for outcome in done.outcomes)
    assert len(journal(client, cluster)) == MANY
    run(store, cluster, 8, assignments(name="8"))
    run(store, cluster, 9, [])
    assert fields(client, cluster) == {"", "q"}


def test_a_new_batch_forgets_all_pages_of_the_one_before(
    store: OwnershipStore, client: redis.Redis, cluster: str
) -> None:
    run(store, cluster, 7, assignments())
    assert fields(client, cluster) == {"", "q", f"q#{PAGE}", f"q#{2 * PAGE}"}

    run(store, cluster, 8, [])

    assert fields(client, cluster) == {"", "q"}


def test_what_a_version_that_knew_no_pages_applied_is_repeated(
    store: OwnershipStore, client: redis.Redis, cluster: str
) -> None:
    """Commit 8a0b0fc kept a whole batch as one."""
    done = run(store, cluster, 7, assignments())
    client.delete(keys.applied_key(cluster))
    whole = msgspec.json.encode(done.outcomes).decode()
    client.hset(keys.applied_key(cluster), "q", f"7 {whole}")

    again = run(store, cluster, 7, assignments())
    older = run(store, cluster, 6, assignments(1, "6"))
    other = run(store, cluster, 7, assignments(1, "other"))
    newer = run(store, cluster, 8, [job(Event.READMIT, NO_EPOCH, id="8", bundle=BUNDLE)])

    assert again == BatchOutcome(done.outcomes, repeated=True)
    assert [outcome.reason for outcome in older.outcomes] == [Refused.OLDER_BATCH]
    assert [outcome.reason for outcome in other.outcomes] == [Refused.OLDER_BATCH]
    assert [outcome.reason for outcome in newer.outcomes] == [Refused.ILLEGAL]
    assert len(journal(client, cluster)) == MANY
    assert fields(client, cluster) == {"", "q"}


def test_a_batch_of_nothing_that_such_a_version_applied_is_no_answer_to_another(
    store: OwnershipStore, client: redis.Redis, cluster: str
) -> None:
    client.hset(keys.applied_key(cluster), "q", "7 []")

    done = run(store, cluster, 7, assignments(1))

    assert [outcome.reason for outcome in done.outcomes] == [Refused.OLDER_BATCH]


def test_only_the_newest_queries_are_remembered(
    store: OwnershipStore, client: redis.Redis, cluster: str
) -> None:
    """Each new checkpoint is a query of its own; one that is used again is new again."""
    run(store, cluster, 7, assignments(), query="first")
    for number in range(1, 8):
        run(store, cluster, 7, [], query=str(number))
    asked = [job(Event.QUARANTINE, NO_EPOCH, id="put back", bundle=BUNDLE)]
    older = run(store, cluster, 6, asked, query="first")
    assert [outcome.reason for outcome in older.outcomes] == [Refused.OLDER_BATCH]

    run(store, cluster, 8, [], query="first")
    for number in range(8, 15):
        run(store, cluster, 7, [], query=str(number))
    assert fields(client, cluster) == {"", "first", *map(str, range(8, 15))}

    run(store, cluster, 7, [], query="15")
    assert fields(client, cluster) == {"", *map(str, range(8, 16))}
