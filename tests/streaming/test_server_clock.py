"""What a slow answer leaves open is no jump; an absence is timed from its first failure."""

from __future__ import annotations

import pytest

from sinks.errors import StoreUnavailable
from streaming.watch.server_clock import ServerClock
from trimtab.doubt import Doubt
from trimtab.store.server_time import ServerTime


class Server:
    """Takes ``delay`` each way."""

    def __init__(self) -> None:
        self.now = 0.0
        self.ahead = 1000.0
        self.there, self.back = 0.0, 0.0
        self.away = False

    def time(self) -> float:
        if self.away:
            raise StoreUnavailable("no answer")
        self.now += self.there
        told = self.now + self.ahead
        self.now += self.back
        return told


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.fixture
def clock(server: Server) -> ServerClock:
    return ServerClock(server.time, lambda: server.now, window=10.0, margin=1.0)


@pytest.mark.parametrize(("there", "back"), [(4.0, 0.0), (0.0, 4.0), (2.0, 2.0)])
def test_a_slow_answer_does_not_count_as_a_clock_jump(
    server: Server, clock: ServerClock, there: float, back: float
) -> None:
    clock.look()
    server.there, server.back = there, back
    clock.look()
    assert clock.drift == 0.0


def test_a_clock_jump_that_scripts_would_refuse_is_not_sent_to_them(
    server: Server, clock: ServerClock
) -> None:
    """Though the job's own margin is larger, and it does not doubt."""
    clock.look()
    server.now += 10.0
    assert clock.estimate_ms() == 1_010_000
    server.ahead += 0.75
    clock.look()
    assert clock.level() is Doubt.STABLE
    assert clock.estimate_ms() is None


def test_half_of_a_jump_in_a_slow_answer_is_not_taken_for_the_truth() -> None:
    """The look alone could not tell: the middle of it is half a second off."""
    clock = ServerTime(window=10.0, margin=0.5)
    for at in range(12):
        clock.look(at, at + 1000.0, at)
    clock.look(12.0, 12.0 + 1001.35, 12.88)

    estimate = clock.estimate(13.0)

    assert estimate is not None
    assert abs(estimate - (13.0 + 1001.35)) > 0.5


def test_of_a_jump_in_a_slow_answer_the_sure_part_is_seen(
    server: Server, clock: ServerClock
) -> None:
    clock.look()
    server.there, server.ahead = 2.0, 1005.0
    clock.look()
    assert clock.drift == pytest.approx(5.0)
    server.there, server.back, server.ahead = 0.0, 2.0, 1010.0
    clock.look()
    assert clock.drift == pytest.approx(8.0)


def test_an_absence_begins_with_the_first_failure_and_ends_with_an_answer(
    server: Server, clock: ServerClock
) -> None:
    clock.look()
    server.now, server.away = 50.0, True
    for _ in range(3):
        with pytest.raises(StoreUnavailable):
            clock.look()
        server.now += 2.0
    assert clock.away_seconds() == 6.0
    server.away = False
    clock.look()
    assert clock.away_seconds() == 0.0
