"""Journals are carried one beside another: what ails one of them stops no other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest
import redis
from structlog.testing import capture_logs

from sinks.errors import KafkaUnavailable, SinkError, StoreUnavailable
from sinks.exposition import Exposition
from sinks.redis.journal_relay import PAGE, JournalRelay
from sinks.redis.server.connections import redis_client
from streaming.watch.relay import RelayThread
from tests.support.publishing import Nowhere

AILING, WELL = "ailing", "well"


class Script(JournalRelay):
    """Fails as it is told, or carries ``length`` entries a page."""

    def __init__(self) -> None:
        super().__init__(redis_client("redis://127.0.0.1:1/0"), Nowhere())
        self.trouble: dict[str, Exception] = {}
        self.length: dict[str, int] = {}
        self.left_out: dict[str, int] = {}
        self.away: SinkError | None = None
        self.asked: Counter[str] = Counter()

    def find_waiting(self, clusters: Sequence[str]) -> list[str]:
        if self.away is not None:
            raise self.away
        told = self.trouble.keys() | self.left_out.keys()
        return [each for each in clusters if each in told or self.length.get(each)]

    def relay(self, cluster: str) -> int:
        self.asked[cluster] += 1
        if cluster in self.trouble:
            raise self.trouble[cluster]
        carried = min(PAGE, self.length.get(cluster, 0))
        self.length[cluster] = self.length.get(cluster, 0) - carried
        return carried

    def refill(self, cluster: str) -> int:
        return self.left_out.pop(cluster, 0)


@pytest.fixture
def shown() -> Exposition:
    return Exposition()


@pytest.fixture
def relay() -> Script:
    return Script()


@pytest.fixture
def thread(relay: Script, shown: Exposition) -> RelayThread:
    return RelayThread(relay, lambda: (AILING, WELL), shown)


def total(shown: Exposition, name: str, cluster: str) -> float | None:
    return shown.registry.get_sample_value(f"{name}_total", {"cluster": cluster})


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(KafkaUnavailable("away"), id="a sink that is away"),
        pytest.param(redis.ResponseError("WRONGTYPE"), id="an answer that no adapter translates"),
        pytest.param(KeyError("change"), id="a mistake of ours"),
    ],
)
def test_whatever_one_fails_with_the_others_are_carried_on(
    thread: RelayThread, relay: Script, shown: Exposition, error: Exception
) -> None:
    relay.trouble[AILING] = error
    with capture_logs() as said:
        for _ in range(20):
            relay.length[WELL] = 3
            thread.look()

    assert relay.asked[WELL] == 20
    assert total(shown, "trimtab_relayed_changes", WELL) == 60
    assert 1 < relay.asked[AILING] < 10
    assert total(shown, "trimtab_relay_failures", AILING) == relay.asked[AILING]
    assert [(each["event"], each["cluster"]) for each in said] == [
        ("the journal cannot be copied to Kafka now", AILING)
    ]


def test_what_was_mended_is_carried_again_and_said_to_be(
    thread: RelayThread, relay: Script, shown: Exposition
) -> None:
    relay.trouble[AILING] = KafkaUnavailable("away")
    thread.look()
    del relay.trouble[AILING]
    relay.length[AILING] = 5
    with capture_logs() as said:
        thread.look()
        thread.look()
    assert total(shown, "trimtab_relayed_changes", AILING) == 5
    assert [each["event"] for each in said] == ["the journal is copied to Kafka again"]


def test_one_that_fails_for_long_is_asked_now_and_then(thread: RelayThread, relay: Script) -> None:
    relay.trouble[AILING] = KafkaUnavailable("away")
    for _ in range(1000):
        thread.look()
    before = relay.asked[AILING]
    for _ in range(1010):
        thread.look()
    assert relay.asked[AILING] - before == 10


def test_what_a_full_journal_left_out_waits_until_it_is_carried(
    thread: RelayThread, relay: Script, shown: Exposition
) -> None:
    relay.length[WELL], relay.left_out[WELL] = 2 * PAGE + 1, 7
    thread.look()
    thread.look()
    assert relay.left_out[WELL] == 7
    thread.look()
    assert WELL not in relay.left_out
    assert total(shown, "trimtab_refilled_bundles", WELL) == 7


def test_a_journal_without_entries_is_not_read(thread: RelayThread, relay: Script) -> None:
    relay.length[AILING] = 1
    thread.look()
    thread.look()
    assert relay.asked == {AILING: 1}


def test_of_a_store_that_is_away_each_cluster_is_told(
    thread: RelayThread, relay: Script, shown: Exposition
) -> None:
    relay.away = StoreUnavailable("away")
    relay.trouble = {AILING: relay.away, WELL: relay.away}
    with capture_logs() as said:
        thread.look()
    assert [each["cluster"] for each in said] == [AILING, WELL]
    assert total(shown, "trimtab_relay_failures", WELL) == 1
