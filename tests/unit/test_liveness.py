"""Brokers that are gone, come and go, or are lost together; and what is said about them."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from trimtab.cluster.intents.apply import apply_intent
from trimtab.doubt import Doubt, gravest
from trimtab.health.assessment import suspicions
from trimtab.model import Epoch
from trimtab.ownership import State
from trimtab.settings import Settings
from trimtab.state.liveness import Late, Liveness
from trimtab.state.memory import Memory
from trimtab.state.pace import Pace
from trimtab.wire.intent import Intent, IntentKind
from trimtab.wire.ownership import Record

SETTINGS = Settings()
SECOND = 1000
HOUR = 3600 * SECOND


def flapped(times: int) -> Liveness:
    """Broker a, lost and back so often within two seconds each."""
    alive = Liveness()
    for i in range(times):
        alive = alive.lost("a", 2 * i * SECOND, 0).joined("a", (2 * i + 1) * SECOND)
    return alive


def delay_after(losses: int) -> float:
    (until,) = flapped(losses).held_back(SETTINGS.flapping).values()
    return (until - (2 * losses - 1) * SECOND) / SECOND


@pytest.mark.parametrize(
    ("losses", "seconds"), [(1, 10), (2, 20), (3, 40), (6, 320), (7, 600), (2000, 600)]
)
def test_a_broker_waits_twice_as_long_after_each_loss(losses: int, seconds: int) -> None:
    assert delay_after(losses) == seconds


def test_a_broker_that_joins_for_the_first_time_waits_for_nothing() -> None:
    alive = Liveness().joined("a", 5 * SECOND)
    assert alive == Liveness()
    assert alive.out_of_use(SETTINGS.flapping, 5 * SECOND) == set()


def test_a_broker_is_of_no_use_while_it_is_gone_held_back_or_drained() -> None:
    alive = flapped(1).lost("b", SECOND, SECOND).drained("c")
    assert alive.out_of_use(SETTINGS.flapping, 11 * SECOND - 1) == {"a", "b", "c"}
    assert alive.undrained("c").out_of_use(SETTINGS.flapping, 11 * SECOND) == {"b"}


def test_losses_are_forgotten_after_an_hour_without_any() -> None:
    assert flapped(3).recent(SETTINGS.flapping, 4 * SECOND + HOUR).losses.keys() == {"a"}
    assert flapped(3).recent(SETTINGS.flapping, 4 * SECOND + HOUR + 1).losses == {}


def test_losses_of_long_ago_that_are_read_now_are_no_flapping() -> None:
    """A job that starts again reads trimtab.control from its beginning."""
    alive, now = Liveness(), 10 * HOUR
    for i in range(5):
        alive = alive.recent(SETTINGS.flapping, now).lost("a", i * SECOND, now)
        alive = alive.recent(SETTINGS.flapping, now).joined("a", i * SECOND + 1)
    assert alive.out_of_use(SETTINGS.flapping, now) == set()
    assert suspected(lost("a", "b"), dict.fromkeys("abcde", 1), now) is Doubt.STABLE


def test_a_loss_that_is_told_twice_counts_once() -> None:
    alive = Liveness().lost("a", 1, 1).lost("a", 2, 2)
    assert (alive.gone, alive.losses["a"].number) == ({"a": 1}, 1)


def test_those_that_are_late_are_what_the_last_look_named_page_by_page() -> None:
    alive = Liveness().lost("a", 1, 1, Late(("x", "y"), 1)).lost("a", 2, 1, Late(("z",), 2))
    assert alive.late == {"x": 1, "y": 1, "z": 2}
    alive = alive.lost("b", 3, 1, Late((), 3))
    assert (sorted(alive.late), sorted(alive.gone)) == (["x", "y", "z"], ["a", "b"])
    assert alive.lost("c", 4, 1, Late(("y",), 1)).late == {"y": 4}


def test_pages_of_a_look_add_up_as_intents_bring_them() -> None:
    memory = Memory()
    for page, late in enumerate((("x",), ("y",), ()), 1):
        said = Intent(
            id="", kind=IntentKind.BROKER_LOST, cluster="c", broker="a", brokers=late, page=page
        )
        memory = apply_intent(memory, said, SETTINGS, page, 1).memory
    assert sorted(memory.liveness.late) == ["x", "y"]


def test_a_new_watcher_that_tells_of_a_loss_again_says_who_is_late_now() -> None:
    alive = Liveness().lost("a", 1, 1, Late(("x",), 1))
    again = alive.lost("a", 9, 9, Late(("y",), 1))
    assert (again.late, again.gone) == ({"y": 9}, {"a": 1})


def test_a_version_without_pages_names_all_of_them_with_each_loss() -> None:
    alive = Liveness().lost("a", 1, 1, Late(("x", "y"))).lost("a", 2, 2, Late(("z",)))
    assert alive.late == {"x": 1, "y": 1}
    assert alive.lost("b", 3, 3, Late(("y",))).late == {"y": 3}


def suspected(alive: Liveness, appended: dict[str, int], now: int = 0) -> Doubt:
    return gravest(suspicions(remembered(alive, appended), {}, SETTINGS, now).values())


def remembered(alive: Liveness, appended: dict[str, int]) -> Memory:
    paces = dict.fromkeys(appended, Pace(10_000.0, 0.0))
    return Memory(liveness=alive, appended=appended, paces=paces)


def lost(*brokers: str) -> Liveness:
    alive = Liveness()
    for broker in brokers:
        alive = alive.lost(broker, 0, 0)
    return alive


@pytest.mark.parametrize(
    ("brokers", "gone", "level"),
    [
        pytest.param("ab", "a", Doubt.STABLE, id="one of two"),
        pytest.param("abc", "a", Doubt.STABLE, id="one of three"),
        pytest.param("abcde", "ab", Doubt.JITTERY, id="two of five"),
        pytest.param("abcdefghij", "ab", Doubt.STABLE, id="two of ten, a fifth"),
        pytest.param("abcdefghij", "abc", Doubt.JITTERY, id="three of ten"),
        pytest.param("abcdefghij", "abcd", Doubt.JITTERY, id="four of ten"),
        pytest.param("abcdefghij", "abcde", Doubt.UNSTABLE, id="half of ten"),
        pytest.param("abcd", "abcd", Doubt.UNSTABLE, id="all"),
    ],
)
def test_the_more_brokers_are_lost_at_once_the_less_is_believed(
    brokers: str, gone: str, level: Doubt
) -> None:
    assert suspected(lost(*gone), dict.fromkeys(brokers, 1)) is level


def test_losses_count_together_for_a_minute() -> None:
    alive, fleet = lost("a", "b", "c"), dict.fromkeys("abcdefghij", 1)
    assert suspected(alive, fleet, 59_999) is Doubt.JITTERY
    assert suspected(alive, fleet, 60_000) is Doubt.STABLE


def test_brokers_that_are_silent_count_as_those_that_are_lost() -> None:
    heard = dict.fromkeys("abcdefghij", 200 * SECOND) | dict.fromkeys("bcde", SECOND)
    assert suspected(Liveness(), heard) is Doubt.STABLE
    assert suspected(lost("a"), heard) is Doubt.UNSTABLE


def test_drained_brokers_may_leave_in_any_number() -> None:
    alive = lost(*"abcdef")
    for broker in "abcdef":
        alive = alive.drained(broker)
    assert suspected(alive, dict.fromkeys("abcdefghij", 1)) is Doubt.STABLE


def test_absent_brokers_that_own_nothing_have_left() -> None:
    alive, fleet = lost(*"abcde"), dict.fromkeys("abcdefghij", 1)

    def silence(owners: Iterable[str | None]) -> Doubt:
        records = {
            f"t/n/{i}": Record(state=State.OWNED, epoch=Epoch(1, 1), owner=owner)
            for i, owner in enumerate(owners)
        }
        return suspicions(remembered(alive, fleet), records, SETTINGS, HOUR)["silence"]

    assert silence("abcdefghij") is Doubt.UNSTABLE
    assert silence(["a", "b", "f", None]) is Doubt.STABLE, "two of the seven that count"
    assert silence("abcdef") is Doubt.UNSTABLE
    assert silence("fghij") is Doubt.STABLE
    assert silence([None]) is Doubt.STABLE
    assert silence([]) is Doubt.UNSTABLE, "nothing is known of who owns"


def test_when_all_fall_silent_together_no_broker_counts_as_silent() -> None:
    """Kafka's clock stands still with them."""
    assert suspected(Liveness(), dict.fromkeys("abcd", 1), HOUR) is Doubt.STABLE
