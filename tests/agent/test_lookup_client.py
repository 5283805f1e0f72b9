"""A client finds a topic's broker, remembers it by bundle, and forgets what it is told is wrong."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor

import pytest
from redis import Redis

from agent.lookup.client import BACK_AGAIN_S, MOST_REDIRECTS, LookupClient, LookupFailed, NotNow
from agent.lookup.places import Place
from agent.lookup.single_flight import SingleFlight
from tests.agent.looking_up import TOPIC, WHOLE, Scene, owned
from trimtab.model import FULL_RANGE_END, Epoch, HashRange, InvalidName
from trimtab.ownership import Event
from trimtab.store.ring import position
from trimtab.wire.lookup import Answer, AnswerKind, Avoid, Cause, answer_failed, answer_retry

A, B, C = "a:8080", "b:8080", "c:8080"
OLD, NOW, NEW = Epoch(1, 6), Epoch(1, 7), Epoch(2, 1)


def connect(broker: str, epoch: Epoch = NOW, bundle: str = WHOLE, proxied: bool = False) -> Answer:
    return Answer(
        kind=AnswerKind.CONNECT, bundle=bundle, broker=broker, epoch=epoch, proxied=proxied
    )


def redirect(broker: str, authoritative: bool = False) -> Answer:
    return Answer(kind=AnswerKind.REDIRECT, broker=broker, authoritative=authoritative)


class Brokers:
    """Give the answers in their order, the last one for ever; ``absent`` ones do not answer."""

    def __init__(self, *answers: Answer, absent: Iterable[str] = ()) -> None:
        self.answers = list(answers)
        self.absent = set(absent)
        self.asked: list[str | None] = []
        self.avoided: list[Avoid | None] = []
        self.authoritative: list[bool] = []
        self.slept: list[float] = []

    def __call__(
        self, broker: str | None, topic: str, /, *, authoritative: bool, avoid: Avoid | None
    ) -> Answer:
        assert topic.startswith("persistent://")
        self.asked.append(broker)
        self.avoided.append(avoid)
        self.authoritative.append(authoritative)
        if broker in self.absent:
            raise ConnectionRefusedError(broker)
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

    def client(self, patience_s: float = 30.0) -> LookupClient:
        """Its pauses take no time but are counted."""
        return LookupClient(
            self, patience_s=patience_s, clock=lambda: sum(self.slept), sleep=self.slept.append
        )


# Remembering


def test_one_answer_serves_every_topic_of_the_bundle() -> None:
    brokers = Brokers(connect(A))
    client = brokers.client()

    found = {client.owner_of(f"{TOPIC}-{i}") for i in range(100)}

    assert found == {Place(WHOLE, A, NOW)}
    assert brokers.asked == [None]


def test_through_a_proxy_the_place_says_so() -> None:
    assert Brokers(connect(A, proxied=True)).client().owner_of(TOPIC).proxied


@pytest.mark.parametrize(
    ("epoch", "owner", "expected", "asked"),
    [
        pytest.param(OLD, B, A, 1, id="older news"),
        pytest.param(NOW, B, A, 1, id="as old"),
        pytest.param(NOW, None, A, 1, id="as old, without an owner"),
        pytest.param(NEW, B, B, 1, id="newer, with the owner"),
        pytest.param(NEW, None, C, 2, id="newer, without"),
    ],
)
def test_a_refusal_counts_if_it_is_newer(
    epoch: Epoch, owner: str | None, expected: str, asked: int
) -> None:
    brokers = Brokers(connect(A), connect(C, NEW))
    client = brokers.client()
    client.owner_of(TOPIC)

    news = client.moved(WHOLE, epoch, owner)

    assert news is (epoch > NOW)
    assert client.owner_of(TOPIC).broker == expected
    assert len(brokers.asked) == asked


def test_an_answer_from_before_the_refusal_is_not_remembered() -> None:
    brokers = Brokers(connect(A), connect(B, NEW))
    client = brokers.client()
    client.moved(WHOLE, NEW, None)

    assert client.owner_of(TOPIC).broker == A
    assert client.owner_of(TOPIC).broker == B
    assert client.owner_of(TOPIC).broker == B
    assert len(brokers.asked) == 2


def test_a_place_that_was_of_no_use_is_asked_about_and_never_remembered_again() -> None:
    brokers = Brokers(connect(A), connect(A), connect(A), connect(B, NEW))
    client = brokers.client()
    wrong = client.owner_of(TOPIC)

    assert client.owner_of(TOPIC, wrong).broker == A
    assert brokers.avoided[-1] == Avoid(A, NOW)
    assert brokers.slept == [BACK_AGAIN_S]
    assert client.owner_of(TOPIC).broker == A
    assert [client.owner_of(TOPIC).broker for _ in range(3)] == [B, B, B]
    assert len(brokers.asked) == 4


def test_a_place_that_was_wrong_a_while_ago_is_answered_by_what_was_heard_since() -> None:
    brokers = Brokers(connect(A))
    client = brokers.client()
    wrong = client.owner_of(TOPIC)
    client.moved(WHOLE, NEW, B)

    assert client.owner_of(TOPIC, wrong).broker == B
    assert len(brokers.asked) == 1


LEFT, RIGHT = f"t/ns/{HashRange(0, 1 << 31)}", f"t/ns/{HashRange(1 << 31, FULL_RANGE_END)}"
IN_LEFT, IN_RIGHT = "persistent://t/ns/c", "persistent://t/ns/a"


def test_a_half_that_moved_takes_the_whole_with_it() -> None:
    assert position(IN_LEFT) < 1 << 31 < position(IN_RIGHT)
    brokers = Brokers(connect(A), connect(C, NEW, RIGHT))
    client = brokers.client()
    client.owner_of(IN_LEFT)

    assert client.moved(LEFT, NEW, B)

    assert client.owner_of(IN_LEFT).broker == B
    assert client.owner_of(IN_RIGHT).broker == C


def test_who_waited_for_the_answer_for_the_other_half_asks_for_itself() -> None:
    brokers = Brokers(connect(B, NEW, LEFT), connect(C, NEW, RIGHT))
    client = brokers.client()
    client.moved(WHOLE, NOW, None)

    assert client.owner_of(IN_RIGHT).broker == C
    assert client.owner_of(IN_LEFT).broker == B
    assert len(brokers.asked) == 2


# Following


def test_redirects_are_followed_and_say_who_must_decide() -> None:
    brokers = Brokers(redirect(A), redirect(B, authoritative=True), connect(C))

    assert brokers.client().owner_of(TOPIC).broker == C
    assert brokers.asked == [None, A, B]
    assert brokers.authoritative == [False, False, True]


def test_redirects_that_do_not_end_are_followed_only_so_far() -> None:
    brokers = Brokers(redirect(A))

    with pytest.raises(LookupFailed) as failure:
        brokers.client().owner_of(TOPIC)

    assert failure.value.answer.cause is Cause.TOO_MANY_REDIRECTS
    assert len(brokers.asked) == 1 + MOST_REDIRECTS


def test_after_a_redirect_into_the_void_it_starts_again_from_the_service_url() -> None:
    brokers = Brokers(redirect(A), connect(B), absent={A})

    assert brokers.client().owner_of(TOPIC).broker == B
    assert brokers.asked == [None, A, None]


def test_it_asks_again_when_the_answer_says_so() -> None:
    brokers = Brokers(answer_retry(Cause.HAND_OVER), answer_retry(Cause.STORE_CLOSED), connect(A))

    assert brokers.client().owner_of(TOPIC).broker == A
    assert brokers.slept == [0.1, 1.0]


def test_patience_ends() -> None:
    brokers = Brokers(answer_retry(Cause.STORE_CLOSED))

    with pytest.raises(NotNow) as failure:
        brokers.client(patience_s=3.5).owner_of(TOPIC)

    assert failure.value.answer.cause is Cause.STORE_CLOSED
    assert len(brokers.asked) == 4


def test_what_fails_is_not_asked_again() -> None:
    brokers = Brokers(answer_failed(Cause.QUARANTINED, "an operator readmits it"))

    with pytest.raises(LookupFailed, match="an operator readmits it"):
        brokers.client().owner_of(TOPIC)

    assert len(brokers.asked) == 1


def test_a_name_that_cannot_be_a_topic_is_not_asked_for() -> None:
    with pytest.raises(InvalidName):
        Brokers(connect(A)).client().owner_of("t/orders")


# Together


class Sought:
    """A key that knows when it was looked for so often."""

    def __init__(self, times: int) -> None:
        self.times = times
        self.found = threading.Event()

    def __hash__(self) -> int:
        self.times -= 1
        if self.times == 0:
            self.found.set()
        return 1


THREADS = 1000


def at_once(work: Callable[[], object]) -> list[object]:
    with ThreadPoolExecutor(THREADS) as pool:
        return [each.result() for each in [pool.submit(work) for _ in range(THREADS)]]


def test_of_a_thousand_that_want_the_same_one_works_and_all_get_its_result() -> None:
    flights: SingleFlight[Sought, int] = SingleFlight()
    # The first looks for it and puts it there; then each of the others finds it.
    key = Sought(1 + THREADS)
    worked: list[int] = []

    def work() -> int:
        assert key.found.wait(60.0)
        worked.append(1)
        return len(worked)

    assert at_once(lambda: flights.run(key, work)) == [1] * THREADS
    assert flights.run(key, lambda: 2) == 2


def test_after_a_failure_the_next_thread_tries_again() -> None:
    flights: SingleFlight[str, int] = SingleFlight()
    with pytest.raises(ZeroDivisionError):
        flights.run("key", lambda: 1 // 0)
    assert flights.run("key", lambda: 2) == 2


def test_a_thousand_threads_that_want_an_unowned_bundle_make_one_claim(
    client: Redis, cluster: str
) -> None:
    scene = Scene(client, cluster)
    scene.obeying(A, B)
    scene.hint(A, B)
    scene.put(None)
    lookup = scene.lookup().lookup
    asked: list[str] = []

    def ask(_: str | None, topic: str, /, *, authoritative: bool, avoid: Avoid | None) -> Answer:
        asked.append(topic)
        return lookup(topic, authoritative=authoritative, avoid=avoid)

    wanting = LookupClient(ask)
    places = at_once(lambda: wanting.owner_of(TOPIC))

    assert len(set(places)) == 1
    assert asked == [TOPIC]
    assert len(scene.accepted(Event.ASSIGN)) == 1


def test_a_client_gets_over_the_death_of_an_owner(client: Redis, cluster: str) -> None:
    scene = Scene(client, cluster)
    scene.obeying(A, B)
    scene.hint(B)
    scene.put(owned(A))
    lookup = scene.lookup().lookup
    wanting = LookupClient(lambda _, topic, **more: lookup(topic, **more), sleep=scene.sleep)

    first = wanting.owner_of(TOPIC)
    assert first.broker == A
    scene.die(A)
    assert wanting.owner_of(TOPIC, first).broker == B
    assert wanting.owner_of(TOPIC).broker == B
