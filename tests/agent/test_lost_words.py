"""A living owner serves what its records say, whichever request, answer or command was lost."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from redis import Redis

from sinks.errors import StoreUnavailable
from sinks.redis.ownership_store import OwnershipStore
from tests.agent.support import BUNDLE, A, B, Job
from tests.agent.turned_by_hand import Host
from trimtab.ownership import Event, State
from trimtab.wire.command import CommandKind
from trimtab.wire.keys import command_stream
from trimtab.wire.ownership import Transition, TransitionOutcome


class Losing(OwnershipStore):
    """Loses the next request, or the next answer, of these events."""

    def __init__(self, client: Redis) -> None:
        super().__init__(client)
        self.requests: set[Event] = set()
        self.answers: set[Event] = set()

    def apply(
        self, cluster: str, transition: Transition, server_ms: int | None = None
    ) -> TransitionOutcome:
        if transition.event in self.requests:
            self.requests.remove(transition.event)
            raise StoreUnavailable("the request was lost")
        outcome = super().apply(cluster, transition, server_ms)
        if transition.event in self.answers:
            self.answers.remove(transition.event)
            raise StoreUnavailable("the answer was lost")
        return outcome


class Story:
    """Broker a stops serving for a transfer, whose hand-over is lost; the job lets a keep it."""

    def __init__(self, job: Job, client: Redis, host: Callable[..., Host]) -> None:
        self.job, self.client = job, client
        self.a, self.b = host(A, BUNDLE), host(B)
        self.store = self.a.agent._obeyer.store = Losing(client)
        for one in (self.a, self.b):
            one.agent.turn()
        job.transfer(A, B)
        self.store.requests.add(Event.HAND_OVER)
        self.a.agent.turn()
        assert not self.a.agent.serves(BUNDLE)
        job.ask(Event.KEEP, A, {A: CommandKind.OWN})

    def two_minutes(self) -> None:
        for _ in range(40):
            for one in (self.a, self.b):
                one.clock.now += 3.0
                one.agent.turn()

    def served_by_its_owner(self) -> bool:
        record = self.job.record()
        return (record.state, record.owner) == (State.OWNED, A) and self.a.agent.serves(BUNDLE)


@pytest.fixture
def story(job: Job, client: Redis, host: Callable[..., Host]) -> Story:
    return Story(job, client, host)


def test_the_answer_to_its_claim_is_lost(story: Story) -> None:
    story.store.answers.add(Event.CLAIM)
    story.a.agent.turn()
    assert not story.a.agent.serves(BUNDLE)
    story.a.agent.turn()
    assert story.served_by_its_owner()


def test_the_command_is_lost(story: Story) -> None:
    """A rebuilt store, or a stream that was deleted: no word of it reaches the broker."""
    story.client.delete(command_stream(story.job.cluster, A))
    story.two_minutes()
    assert story.served_by_its_owner()


def test_it_cannot_load_at_first_and_the_release_is_lost(story: Story) -> None:
    story.a.broker.broken = True
    story.store.requests.add(Event.RELEASE)
    for _ in range(2):
        story.a.agent.turn()
    story.a.broker.broken = False
    story.two_minutes()
    record = story.job.record()
    # It was released the second time, and the job may place it; or a serves it.
    assert record.state is State.FREE or story.served_by_its_owner()


def test_a_look_takes_nothing_back_by_a_record_older_than_one_it_saw(story: Story) -> None:
    """A store that lost its last writes: its records grant nothing until it was rebuilt."""
    record = story.job.record()
    newer = record.epoch._replace(counter=record.epoch.counter + 5)
    story.a.seen.note(BUNDLE, type(record)(state=State.OWNED, epoch=newer, owner=B))
    story.two_minutes()
    assert not story.a.agent.serves(BUNDLE)
