"""Waves, gates and the end of a migration, by what is counted of its topics."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.migrations import GREEN, RUNNING
from trimtab.migration.flaws import MOST_SCOPES, MOST_WAVES, hosts_of, scope_flaws, target_flaws
from trimtab.migration.life import TRANSITIONS, MigrationEvent, MigrationState
from trimtab.migration.migration import Counts, Gate, Migration, Target, Wave
from trimtab.migration.progress import FEWEST_STEPS, advance, estimate_end, forget_failures
from trimtab.migration.scopes import CLUSTER

NOW = 1_000_000
IN_WAVES = replace(RUNNING, waves=(Wave(("t/one",)), Wave(("t/two",))))
LEFT = Counts(migrated=3)


def after(it: Migration, *counts: Counts, unseen: int = 0) -> Migration:
    return advance(it, counts, unseen, NOW)


def test_a_migration_is_completed_only_when_no_topic_is_left() -> None:
    for left in ("active", "replicating", "terminated", "draining"):
        assert after(RUNNING, Counts(migrated=9, **{left: 1})).state == "running"
    assert after(RUNNING, LEFT, unseen=1).state == "running"
    done = after(RUNNING, LEFT)
    assert (done.state, done.ended) == ("completed", NOW)


def test_a_migration_is_not_completed_before_its_last_wave() -> None:
    it = after(IN_WAVES, LEFT, Counts(), Counts())
    assert (it.state, it.wave) == ("running", 1)


def test_a_paused_migration_is_completed_too_if_nothing_is_left() -> None:
    assert after(RUNNING.after(MigrationEvent.PAUSE), LEFT).state == "completed"


@pytest.mark.parametrize(
    ("counts", "unseen", "why"),
    [
        (Counts(active=2, migrated=1), 0, "2 topics of this wave are still written on blue"),
        (Counts(replicating=1), 0, "1 topics of this wave are still written on blue"),
        (Counts(draining=1, backlog=11), 0, "a backlog of 11; the gate allows 10"),
        (Counts(draining=1), 4, "4 bundles whose owner has not named their topics"),
    ],
)
def test_a_wave_waits_for_the_one_before(counts: Counts, unseen: int, why: str) -> None:
    it = after(replace(IN_WAVES, gate=Gate(backlog=10)), counts, Counts(9), unseen=unseen)
    assert (it.state, it.wave, it.why) == ("running", 0, why)


def test_a_wave_begins_when_the_backlog_is_within_the_gate() -> None:
    it = after(replace(IN_WAVES, gate=Gate(backlog=10)), Counts(draining=1, backlog=10), Counts(9))
    assert (it.wave, it.why) == (1, "")


def test_the_backlog_of_earlier_waves_counts() -> None:
    it = replace(IN_WAVES, wave=1)
    assert after(it, Counts(draining=1, backlog=1), Counts(), Counts()).wave == 1


def test_too_many_failures_pause_a_migration_in_a_wave() -> None:
    few = Counts(active=9, attempts=FEWEST_STEPS - 1, errors=FEWEST_STEPS - 1)
    assert after(RUNNING, few).state == "running"
    most = Counts(active=9, attempts=40, errors=2)
    assert after(RUNNING, most).state == "running"
    it = after(RUNNING, replace(most, errors=3))
    assert (it.state, it.why) == ("paused", "3 of 40 steps failed; the gate allows 5.0%")
    assert it.stopped
    assert not after(it, Counts(migrated=9)).stopped


def test_a_resumed_migration_is_judged_by_what_fails_from_then_on() -> None:
    failed = Counts(active=9, attempts=40, errors=9)
    it = forget_failures(after(RUNNING, failed).after(MigrationEvent.RESUME))
    assert after(it, failed).state == "running"
    assert after(it, replace(failed, attempts=80, errors=12)).state == "paused"


def test_a_rollback_ends_when_each_topic_that_had_begun_is_judged() -> None:
    back = RUNNING.after(MigrationEvent.ROLL_BACK)
    assert after(back, Counts(active=7, draining=1, migrated=2, stays=2)).state == "rolling-back"
    assert after(back, Counts(active=7, replicating=1)).state == "rolling-back"
    it = after(back, Counts(active=7, draining=1, migrated=2, stays=3))
    assert (it.state, it.ended) == ("rolled-back", NOW)


def test_a_rollback_whose_store_has_lost_records_says_so() -> None:
    back = RUNNING.after(MigrationEvent.ROLL_BACK)
    it = after(after(back, Counts(active=7, draining=5, migrated=2)), Counts(active=3))
    assert it.state == "rolled-back"
    assert it.why.startswith("the store has lost the records of 4 topics or more")
    assert not after(after(back, Counts(active=7, draining=5)), Counts(active=12)).why


def test_when_it_last_came_further_is_on_record() -> None:
    first = after(RUNNING, Counts(active=9))
    assert first.moved == NOW

    def later(it: Migration, *counts: Counts) -> int:
        return advance(it, counts, 0, NOW + 1000).moved

    assert later(first, Counts(active=9)) == NOW
    assert later(first, Counts(active=9, attempts=5, errors=5)) == NOW
    assert later(first, Counts(active=8, terminated=1, attempts=1)) == NOW + 1000
    assert later(first, Counts(active=10)) == NOW + 1000
    assert later(first, Counts(migrated=9)) == NOW + 1000
    stopped = after(first, Counts(active=9, attempts=40, errors=40))
    assert later(stopped, Counts(active=9, attempts=40, errors=40)) == NOW


def test_the_end_is_estimated_by_the_pace_so_far() -> None:
    it = replace(RUNNING, at=NOW - 60_000)
    assert estimate_end(after(it, Counts(active=30, migrated=10))) == NOW + 180_000
    assert estimate_end(after(it, Counts(active=30))) is None
    waits = replace(it, waves=IN_WAVES.waves)
    assert estimate_end(after(waits, Counts(draining=1, migrated=9, backlog=3), Counts(1))) is None
    new = Counts(active=30, migrated=15, stays=5, began=5)
    assert estimate_end(after(it, new)) == NOW + 180_000
    assert estimate_end(after(it, replace(new, migrated=5))) is None
    assert estimate_end(after(it.after(MigrationEvent.PAUSE), Counts(active=3, migrated=1))) is None


numbers = st.integers(0, 50)
counts = st.builds(Counts, *[numbers] * 10)


@given(st.sampled_from(list(MigrationState)), st.lists(counts, min_size=3, max_size=3), numbers)
def test_what_is_seen_changes_a_migration_by_its_table_alone(
    state: MigrationState, seen: list[Counts], unseen: int
) -> None:
    it = replace(IN_WAVES, state=state)
    found = after(it, *seen, unseen=unseen)
    assert found.state is state or found.state in TRANSITIONS[state].values()
    assert found.wave in (it.wave, it.wave + 1)
    # The same once more changes no more than the next wave: a look that is repeated is harmless.
    again = after(found, *seen, unseen=unseen)
    assert again.wave >= found.wave


def test_a_target_without_urls_is_refused_with_all_reasons() -> None:
    assert len(list(target_flaws(None, ()))) == 1
    assert len(list(target_flaws(Target(), ()))) == 1
    web_only = Target(serviceUrl="green:8080")
    assert [each.split(":")[0] for each in target_flaws(web_only, ())] == ["target", "serviceUrl"]
    broker_only = Target(brokerServiceUrl="http://green:6650")
    assert len(list(target_flaws(broker_only, ()))) == 2


@pytest.mark.parametrize(
    "url",
    [
        "http://",
        "http:///x",
        "https://green:8080",
        "http://green:99999",
        "http://green:0",
        "http://user@green:8080",
        "http://green :8080",
        "http://gr\u00fcn:8080",
        f"http://{'g' * 2000}:8080",
    ],
)
def test_what_is_no_url_is_refused(url: str) -> None:
    [problem] = target_flaws(replace(GREEN, serviceUrl=url), ())
    assert problem.startswith("serviceUrl: ")


def test_green_is_not_blue() -> None:
    assert list(target_flaws(GREEN, ["blue:8080"])) == []
    several = replace(GREEN, serviceUrl="http://green:8080,blue:8080")
    [problem] = target_flaws(several, ["blue:8080"])
    assert problem.endswith("green is blue")


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("http://Blue:08080/", "blue:8080"),
        ("http://blue", "blue:80"),
        ("https://blue", "blue:443"),
        ("pulsar://blue", "blue:6650"),
        ("pulsar+ssl://blue:", "blue:6651"),
        ("http://[::1]:8080", "[::1]:8080"),
        ("http://[::1]", "[::1]:80"),
        ("http://blue:x", "blue:x"),
    ],
)
def test_a_broker_is_known_however_its_url_is_spelled(url: str, host: str) -> None:
    assert hosts_of(url) == {host}


def test_clients_are_not_sent_to_blue_itself() -> None:
    here = replace(GREEN, brokerServiceUrl="pulsar://BLUE")
    [problem] = target_flaws(here, ["blue:8080", "blue:6650"])
    assert problem == (
        "brokerServiceUrl: pulsar://BLUE is a broker of the cluster that is left: green is blue"
    )


def test_waves_and_gates_are_refused_with_all_reasons() -> None:
    waves = (Wave(()), Wave(("t/two",), 0.0), Wave(("nothing",)), Wave(("t/one",), 1.0))
    problems = list(scope_flaws("t/one", waves, Gate(backlog=-1, errors=1.5)))
    assert [each.split(":")[0] for each in problems] == ["waves"] * 4 + ["gate"] * 2
    assert list(scope_flaws("t/one", (), Gate(backlog=10**30, errors=float("nan")))) == [
        "gate: backlog must be from 0 to 2^53",
        "gate: errors must be a share from 0 to 1",
    ]
    many = (Wave((CLUSTER,)),) * (MOST_WAVES + 1)
    assert len(list(scope_flaws(CLUSTER, many, Gate()))) == 1
    assert len(list(scope_flaws(CLUSTER, (Wave(("t/x",) * (MOST_SCOPES + 1)),), Gate()))) == 1
    assert len(list(scope_flaws("no scope", (), Gate()))) == 1
    wrong = list(scope_flaws("no scope", (Wave(("t/x",), 2.0),), Gate(backlog=-1)))
    assert [each.split(":")[0] for each in wrong] == ["scope", "waves", "gate"]
