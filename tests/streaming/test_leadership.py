"""A fenced driver learns of it, from a heartbeat as from a renewal, and claims no more."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from sinks.errors import Fenced, KafkaUnavailable, Misconfigured, SinkError
from sinks.exposition import Exposition
from streaming.leader.heartbeat import Heartbeat
from streaming.leader.leadership import Leadership
from streaming.shutdown import FENCED, UNREACHABLE, Shutdown


@dataclass
class FakeClaim:
    """Does as told, and notes what was said."""

    generation: int
    trouble: SinkError | None = None
    said: list[str] = field(default_factory=list)

    def assert_held(self) -> None:
        self._say("alive")

    def bid_farewell(self) -> None:
        self._say("farewell")

    def close(self) -> None:
        self.said.append("closed")

    def _say(self, what: str) -> None:
        if self.trouble is not None:
            raise self.trouble
        self.said.append(what)


@pytest.fixture
def claims() -> list[FakeClaim]:
    return [FakeClaim(3), FakeClaim(8)]


@pytest.fixture
def shown() -> Exposition:
    return Exposition()


@pytest.fixture
def leadership(claims: list[FakeClaim], shown: Exposition) -> Leadership:
    made: Iterator[FakeClaim] = iter(claims)
    return Leadership(lambda _above: next(made), shown)


def test_the_newest_claim_counts(
    leadership: Leadership, claims: list[FakeClaim], shown: Exposition
) -> None:
    leadership.beat()
    leadership.renew()
    leadership.beat()

    assert leadership.generation == 8
    assert [claim.said for claim in claims] == [["alive", "alive", "closed"], ["alive"]]
    assert shown.registry.get_sample_value("trimtab_generation") == 8


@pytest.mark.parametrize(
    ("above", "asked"),
    [
        pytest.param(0, 3, id="its own, which Kafka may have lost"),
        pytest.param(2, 3, id="less than its own"),
        pytest.param(9, 9, id="what Redis is open to"),
    ],
)
def test_a_renewed_claim_is_above_its_own_and_above_that_of_redis(
    claims: list[FakeClaim], shown: Exposition, above: int, asked: int
) -> None:
    floors: list[int] = []

    def claim(floor: int) -> FakeClaim:
        floors.append(floor)
        return claims[len(floors) - 1]

    Leadership(claim, shown).renew(above)
    assert floors == [0, asked]


def test_a_fenced_heartbeat_is_told(
    leadership: Leadership, claims: list[FakeClaim], shown: Exposition
) -> None:
    claims[0].trouble = Fenced("newer")
    with pytest.raises(Fenced):
        leadership.beat()
    labels = {"sink": "kafka"}
    assert shown.registry.get_sample_value("trimtab_fenced_writes_total", labels) == 1


def test_a_fenced_job_does_not_fence_its_successor(
    leadership: Leadership, claims: list[FakeClaim]
) -> None:
    claims[0].trouble = Fenced("newer")
    with pytest.raises(Fenced):
        leadership.renew()
    assert leadership.generation == 3


@pytest.mark.parametrize("trouble", [KafkaUnavailable("no answer"), Misconfigured("no right")])
def test_an_absent_kafka_costs_only_a_heartbeat(
    leadership: Leadership, claims: list[FakeClaim], trouble: SinkError
) -> None:
    claims[0].trouble = trouble
    leadership.beat()
    claims[0].trouble = None
    leadership.beat()
    assert claims[0].said == ["alive"]


@pytest.mark.parametrize("trouble", [None, Fenced("newer"), KafkaUnavailable("no answer")])
def test_it_ends_with_a_farewell_if_kafka_answers(
    leadership: Leadership, claims: list[FakeClaim], shown: Exposition, trouble: SinkError | None
) -> None:
    assert shown.registry.get_sample_value("trimtab_leader") == 1
    claims[0].trouble = trouble
    leadership.close()
    assert claims[0].said == (["closed"] if trouble else ["farewell", "closed"])
    assert shown.registry.get_sample_value("trimtab_leader") == 0


@pytest.mark.parametrize(
    ("trouble", "away", "code"),
    [
        pytest.param(None, 0.0, None, id="fit"),
        pytest.param(Fenced("newer"), 0.0, FENCED, id="another one has taken over"),
        pytest.param(Fenced("newer"), 60.0, FENCED, id="the same while Redis is away"),
        pytest.param(KafkaUnavailable("no answer"), 0.0, None, id="Kafka is away"),
        pytest.param(None, 29.0, None, id="Redis is away"),
        pytest.param(None, 30.0, UNREACHABLE, id="Redis is away for long"),
    ],
)
def test_a_driver_that_is_not_fit_to_act_ends(
    leadership: Leadership,
    claims: list[FakeClaim],
    trouble: SinkError | None,
    away: float,
    code: int | None,
) -> None:
    shutdown = Shutdown()
    claims[0].trouble = trouble
    Heartbeat(leadership, lambda: away, 30.0, shutdown).beat()
    assert (shutdown.code if shutdown.is_set() else None) == code


def test_a_driver_that_is_alone_waits_for_redis_for_ever(leadership: Leadership) -> None:
    shutdown = Shutdown()
    Heartbeat(leadership, lambda: 1e9, 0.0, shutdown).beat()
    assert not shutdown.is_set()
