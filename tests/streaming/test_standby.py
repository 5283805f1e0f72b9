"""A standby takes over when it has heard nothing for long enough, and only then."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pytest

from sinks.errors import KafkaUnavailable, StoreUnavailable
from sinks.kafka.generation import Sign
from streaming.leader.standby import Standby

BEAT, CLAIM, FAREWELL = Sign.HEARTBEAT, Sign.CLAIM, Sign.FAREWELL
DEAF = KafkaUnavailable("no answer")
TAKEOVER = 3.0


class Impatient(threading.Event):
    """No standby waits for it."""

    def wait(self, timeout: float | None = None) -> bool:  # noqa: ARG002 - Event's interface
        return self.is_set()


class Heard:
    """What is heard, a second each; ``ended`` is set after the last."""

    def __init__(self, *said: Sign | KafkaUnavailable | None) -> None:
        self.said = list(said)
        self.now = 0.0
        self.ended = Impatient()

    def newest(self, seconds: float) -> Sign | None:  # noqa: ARG002 - the Protocol's
        self.now += 1.0
        said = self.said.pop(0)
        if not self.said:
            self.ended.set()
        if isinstance(said, KafkaUnavailable):
            raise said
        return said


def taken_at(heard: Heard, unfit: Sequence[float] = ()) -> float | None:
    """When a standby took over; ``unfit`` are the times at which it does not reach Redis."""

    def fit() -> None:
        if heard.now in unfit:
            raise StoreUnavailable("no answer")

    standby = Standby(heard, fit, TAKEOVER, lambda: heard.now)
    return heard.now if standby.wait(heard.ended) else None


@pytest.mark.parametrize(
    ("heard", "at"),
    [
        pytest.param([FAREWELL, None], 1, id="an orderly end, or no claim before: at once"),
        pytest.param([BEAT, None, None, None, None], 4, id="silence of three seconds"),
        pytest.param([None, None, None, None], 3, id="silence from the start"),
        pytest.param([BEAT, None, None, BEAT, None, None], None, id="a heartbeat in time"),
        pytest.param([CLAIM, None, None, CLAIM, None, None], None, id="a claim in time"),
        pytest.param([FAREWELL, None], 1, id="a farewell after a claim"),
        pytest.param([BEAT, None, None, DEAF, None, None], None, id="deaf is not silent"),
        pytest.param([BEAT, DEAF, None, None, None, None], 5, id="silent after being deaf"),
    ],
)
def test_silence_is_counted_from_when_a_sign_was_heard(
    heard: list[Sign | KafkaUnavailable | None], at: float | None
) -> None:
    assert taken_at(Heard(*heard)) == at


def test_a_standby_without_redis_leaves_the_claim_alone() -> None:
    assert taken_at(Heard(FAREWELL, None, None, None, None), unfit=[1.0, 2.0]) == 3.0


def test_who_claims_meanwhile_is_waited_for() -> None:
    heard = Heard(FAREWELL, CLAIM, None, None, None, None)
    assert taken_at(heard, unfit=[1.0]) == 5.0


def test_a_standby_that_is_to_end_does_not_claim() -> None:
    heard = Heard(FAREWELL)
    heard.ended.set()
    assert taken_at(heard) is None
