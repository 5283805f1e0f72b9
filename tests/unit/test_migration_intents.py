"""Migrations as operator ② decides them: by intents alone, with one outcome each."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from tests.support.clusters_by_rows import cluster, said, snapshot_row
from tests.support.migrations import GREEN
from tests.support.outcomes import after, told
from trimtab.cluster.operator import Cluster
from trimtab.cluster.state import hash_state
from trimtab.migration.kept import MOST, Migrations
from trimtab.migration.migration import Counts, Migration, Target, Wave
from trimtab.migration.scopes import CLUSTER
from trimtab.state.memory import Memory
from trimtab.wire.columns import pack, unpack
from trimtab.wire.intent import IntentKind as Kind
from trimtab.wire.rows import Row, Tag

TO_GREEN = {"serviceUrl": GREEN.serviceUrl, "brokerServiceUrl": GREEN.brokerServiceUrl}
TOPIC = "persistent://t/one/x"


def start(scope: str = "t/one", name: str = "m", **members: object) -> Row:
    asked: dict[str, object] = {"id": name, "scope": scope, "target": TO_GREEN} | members
    return said(Kind.MIGRATION_START, 0, **asked)


def verb(kind: Kind, name: str = "m") -> Row:
    return said(kind, migration=name)


def progress(unseen: int = 0, *counts: Counts) -> Row:
    members = [msgspec.to_builtins(each) for each in counts]
    return said(Kind.MIGRATION_PROGRESS, migration="m", counts=members, unseen=unseen)


def progress_of(name: str, counts: Counts) -> Row:
    members = [msgspec.to_builtins(counts)]
    return said(Kind.MIGRATION_PROGRESS, migration=name, counts=members)


def migrations_in(rows: list[Row]) -> list[Migration]:
    return [msgspec.json.decode(r.payload, type=Migration) for r in rows if r.tag == Tag.MIGRATION]


def states(it: Cluster) -> dict[str, str]:
    return {each.id: each.state.value for each in it.memory.migrations.items}


def test_a_migration_begins_with_an_intent_and_goes_to_the_sinks() -> None:
    it = cluster({"migration.check": 2.5})
    rows, _ = it.take([start(reason="a new cluster", by="ann")], 1000)
    assert told(rows) == [("m", "done", "")]
    [begun] = migrations_in(rows)
    assert it.memory.migrations.items == (begun,)
    assert (begun.state, begun.target, begun.at) == ("running", GREEN, 1000)
    assert (begun.check, begun.by, begun.reason) == (2.5, "ann", "a new cluster")


def test_the_check_interval_is_a_setting_and_reaches_migrations_that_are_under_way() -> None:
    """While it is 0 no topic moves, and no count comes with which it could be changed."""
    it = cluster({"migration.check": 0.0})
    rows, _ = it.take([start()], 1000)
    assert [each.check for each in migrations_in(rows)] == [0.0]
    rows, _ = it.take([said(Kind.SETTINGS, settings={"migration.check": 3.0})], 2000)
    assert [each.check for each in migrations_in(rows)] == [3.0]
    rows, _ = it.take([said(Kind.RESET, names=["migration.check"])], 3000)
    assert [each.check for each in migrations_in(rows)] == [0.0]


def test_people_pause_resume_and_roll_back() -> None:
    it = cluster()
    it.take([start()], 1000)
    for kind, state in (
        (Kind.MIGRATION_PAUSE, "paused"),
        (Kind.MIGRATION_RESUME, "running"),
        (Kind.MIGRATION_ROLL_BACK, "rolling-back"),
    ):
        rows, _ = it.take([verb(kind)], 2000)
        [found] = migrations_in(rows)
        assert (found.state, found.moved) == (state, 2000)
        assert told(rows)[0][1] == "done"


def test_what_a_person_asks_of_a_migration_that_its_gate_has_paused_ends_that() -> None:
    it = cluster()
    it.take([start(), progress(0, Counts(active=9, attempts=40, errors=9))], 1000)
    [stopped] = it.memory.migrations.items
    assert (stopped.state, stopped.stopped) == ("paused", True)
    it.take([verb(Kind.MIGRATION_RESUME)], 2000)
    [resumed] = it.memory.migrations.items
    assert (resumed.state, resumed.stopped, resumed.why) == ("running", False, "")


def test_the_watchers_counts_bring_a_migration_to_its_end_without_an_outcome() -> None:
    it = cluster()
    it.take([start(waves=[{"scopes": [TOPIC]}])], 1000)
    rows, _ = it.take([progress(0, Counts(migrated=1), Counts(active=2))], 2000)
    assert told(rows) == []
    assert [each.wave for each in migrations_in(rows)] == [1]
    it.take([progress(0, Counts(migrated=1), Counts(migrated=2))], 3000)
    assert states(it) == {"m": "completed"}


def test_each_round_gives_the_store_every_migration_that_brokers_act_on() -> None:
    """A store that was emptied has none."""
    it = cluster()
    it.take([snapshot_row("a:1", {}), start()], 1000)
    rows, _ = it.wake(it.memory.due_ms)
    assert migrations_in(rows) == list(it.memory.migrations.items)


@pytest.mark.parametrize(
    ("members", "rules"),
    [
        ({"target": None}, {"invalid-target"}),
        ({"target": {"serviceUrl": "http://a:1"}}, {"invalid-target"}),
        ({"scope": "nothing", "target": None}, {"invalid-target", "invalid-scope"}),
        ({"scope": TOPIC}, {"already-migrating"}),
        ({"scope": CLUSTER}, {"already-migrating"}),
        ({"scope": "t/one", "target": {}}, {"invalid-target", "already-migrating"}),
        ({"scope": ""}, {"no-subject"}),
    ],
)
def test_bad_input_changes_nothing_and_has_all_reasons(
    members: dict[str, object], rules: set[str]
) -> None:
    it = cluster()
    it.take([snapshot_row("a:1", {}), start()], 1000)
    before = it.memory.migrations
    row = said(Kind.MIGRATION_START, 0, **({"scope": "t/two", "target": TO_GREEN} | members))
    rows, _ = it.take([row], 2000)
    assert it.memory.migrations == before
    [(_, state, rule)] = told(rows)
    assert (state, rule in rules) == ("refused", True)
    [outcome] = [msgspec.json.decode(r.payload) for r in rows if r.tag == Tag.OUTCOME]
    assert len(outcome["problems"]) >= len(rules)


def test_green_that_is_a_broker_of_the_cluster_is_refused() -> None:
    it = cluster()
    it.take([snapshot_row("a:1", {})], 1000)
    blue = TO_GREEN | {"serviceUrl": "http://a:1"}
    told_of = after(it, 2000, said(Kind.MIGRATION_START, id="m", scope="t/one", target=blue))
    assert told_of == [("m", "refused", "invalid-target")]


@pytest.mark.parametrize(
    ("taken", "scope"),
    [
        (CLUSTER, "t/one"),
        (CLUSTER, TOPIC),
        ("t/one", TOPIC),
        ("t/one", "t/one"),
        (TOPIC, "t/one"),
    ],
)
def test_a_scope_inside_one_that_migrates_is_refused(taken: str, scope: str) -> None:
    it = cluster()
    it.take([start(taken, "first")], 1000)
    assert after(it, 2000, start(scope)) == [("m", "refused", "already-migrating")]
    assert states(it) == {"first": "running"}


@pytest.mark.parametrize(("done", "scope"), [("t/one", CLUSTER), (TOPIC, "t/one")])
def test_a_scope_migrates_whole_though_a_part_of_it_has_migrated(done: str, scope: str) -> None:
    it = cluster()
    it.take([start(done, "first"), progress_of("first", Counts(migrated=1))], 1000)
    assert states(it) == {"first": "completed"}
    assert after(it, 2000, start(scope, "whole")) == [("whole", "done", "")]
    first, whole = it.memory.migrations.items
    assert (first.apart, whole.apart) == ((), (done,))
    assert (whole.has(TOPIC), whole.touches(done)) == (False, False)
    assert whole.has("persistent://t/one/y") is (done == TOPIC)
    assert whole.touches("t/one") is (done == TOPIC)


def test_pulsars_flag_of_a_cluster_leaves_namespaces_that_have_migrated() -> None:
    """As Pulsar does, which keeps both flags apart."""
    it = cluster()
    it.take([start(name="first"), progress_of("first", Counts(migrated=1))], 1000)
    flag = said(Kind.CLUSTER_MIGRATION, id="f", target=TO_GREEN, migrated=True)
    assert after(it, 2000, flag) == [("f", "done", "")]
    assert it.memory.migrations.items[1].apart == ("t/one",)
    it.take([said(Kind.CLUSTER_MIGRATION, target=TO_GREEN)], 3000)
    assert states(it) == {"first": "completed", "f": "rolling-back"}


def test_a_cluster_does_not_migrate_while_a_part_of_it_does() -> None:
    it = cluster()
    it.take([start(name="first"), progress_of("first", Counts(migrated=1))], 1000)
    it.take([start("t/two", "second")], 2000)
    assert after(it, 3000, start(CLUSTER, "whole")) == [("whole", "refused", "already-migrating")]
    assert states(it) == {"first": "completed", "second": "running"}


def test_a_part_that_the_whole_left_may_come_back_and_go_again() -> None:
    it = cluster()
    it.take([start(name="first"), progress_of("first", Counts(migrated=1))], 1000)
    it.take([start(CLUSTER, "whole")], 2000)
    assert after(it, 3000, start(TOPIC, "part")) == [("part", "refused", "already-migrating")]
    it.take([verb(Kind.MIGRATION_ROLL_BACK, "first"), progress_of("first", Counts())], 3000)
    assert states(it) == {"first": "rolled-back", "whole": "running"}
    assert after(it, 4000, start("t/one", "again")) == [("again", "done", "")]
    assert after(it, 5000, start("t/two", "other")) == [("other", "refused", "already-migrating")]


def test_a_part_of_a_part_that_came_back_goes_first() -> None:
    """Nothing would take it: it is in neither of both."""
    it = cluster()
    it.take([start(TOPIC, "topic"), progress_of("topic", Counts(migrated=1))], 1000)
    it.take([start("t/one", "first"), progress_of("first", Counts(migrated=1))], 2000)
    it.take([verb(Kind.MIGRATION_ROLL_BACK, "topic"), progress_of("topic", Counts())], 3000)
    rows, _ = it.take([start(CLUSTER, "whole")], 4000)
    assert told(rows) == [("whole", "refused", "already-migrating")]
    [outcome] = [msgspec.json.decode(r.payload) for r in rows if r.tag == Tag.OUTCOME]
    assert outcome["problems"] == [
        f"scope: {TOPIC} has come back from where t/one has migrated to: migrate it first"
    ]
    it.take([start(TOPIC, "again"), progress_of("again", Counts(migrated=1))], 5000)
    assert after(it, 6000, start(CLUSTER, "all")) == [("all", "done", "")]


@pytest.mark.parametrize(
    ("kind", "rule"),
    [(Kind.MIGRATION_RESUME, "migration-state"), (Kind.MIGRATION_PAUSE, "unknown-migration")],
)
def test_a_verb_that_does_not_fit_is_refused(kind: Kind, rule: str) -> None:
    it = cluster()
    it.take([start()], 1000)
    name = "m" if rule == "migration-state" else "n"
    [(_, state, found)] = after(it, 2000, verb(kind, name))
    assert (state, found) == ("refused", rule)


def test_each_namespace_may_have_a_target_of_its_own() -> None:
    it = cluster()
    other = TO_GREEN | {"serviceUrl": "http://other:8080"}
    it.take([start("t/one", "m"), start("t/two", "n", target=other)], 1000)
    assert [each.target.serviceUrl for each in it.memory.migrations.items] == [
        "http://green:8080",
        "http://other:8080",
    ]


def test_pulsars_flag_of_a_cluster_begins_and_rolls_back() -> None:
    it = cluster()
    flag: dict[str, object] = {"target": TO_GREEN, "migrated": True}
    it.take([said(Kind.CLUSTER_MIGRATION, 0, id="f", **flag)], 1000)
    assert (states(it), it.memory.migrations.migrated) == ({"f": "running"}, True)
    # Again: it stands already.
    it.take([said(Kind.CLUSTER_MIGRATION, 0, **flag)], 2000)
    assert states(it) == {"f": "running"}
    it.take([said(Kind.CLUSTER_MIGRATION, target=TO_GREEN)], 3000)
    assert states(it) == {"f": "rolling-back"}


def test_a_cluster_that_migrates_does_not_migrate_elsewhere_by_its_flag() -> None:
    it = cluster()
    flag = said(Kind.CLUSTER_MIGRATION, target=TO_GREEN, migrated=True)
    it.take([flag], 1000)
    before = it.memory.migrations
    other = TO_GREEN | {"serviceUrl": "http://other:8080"}
    elsewhere = said(Kind.CLUSTER_MIGRATION, id="f", target=other, migrated=True)
    assert after(it, 2000, elsewhere) == [("f", "refused", "already-migrating")]
    assert it.memory.migrations == before
    it.take([said(Kind.CLUSTER_MIGRATION, target=other)], 3000)
    assert [*states(it).values()] == ["rolling-back"]


@pytest.mark.parametrize("name", ["ticket/report", "pause", "a//b", "/a", "a/", "..", "a/./b"])
def test_a_flag_begins_no_migration_that_no_path_could_name(name: str) -> None:
    it = cluster()
    flag = said(Kind.CLUSTER_MIGRATION, id=name, target=TO_GREEN, migrated=True)
    assert after(it, 1000, flag) == [(name, "refused", "invalid-id")]
    it.take([said(Kind.CLUSTER_MIGRATION, target=TO_GREEN)], 2000)
    flag = said(Kind.NAMESPACE_MIGRATION, id=f"x/{name}", name="t/one", migrated=True)
    assert after(it, 3000, flag) == [(f"x/{name}", "refused", "invalid-id")]
    assert states(it) == {}
    # Back, it may have any id: nothing begins by it.
    it.take([said(Kind.CLUSTER_MIGRATION, id="tell/1", target=TO_GREEN, migrated=True)], 4000)
    it.take([said(Kind.CLUSTER_MIGRATION, id=f"y/{name}")], 5000)
    assert states(it) == {"tell/1": "rolling-back"}


def test_green_is_given_up_while_a_rollback_waits_for_it_and_once() -> None:
    it = cluster()
    it.take([start()], 1000)
    alone = [
        said(Kind.MIGRATION_ROLL_BACK, id=f"a-{n}", migration="m", alone=True) for n in range(2)
    ]
    it.take([verb(Kind.MIGRATION_ROLL_BACK)], 2000)
    [rolling] = it.memory.migrations.items
    assert (rolling.state, rolling.alone) == ("rolling-back", False)
    assert after(it, 3000, alone[0]) == [("a-0", "done", "")]
    [rolling] = it.memory.migrations.items
    assert (rolling.state, rolling.alone, rolling.moved) == ("rolling-back", True, 3000)
    assert after(it, 4000, alone[1]) == [("a-1", "refused", "migration-state")]


def test_pulsars_flag_of_a_namespace_needs_the_clusters_url() -> None:
    it = cluster()
    flag = said(Kind.NAMESPACE_MIGRATION, id="f", name="t/one", migrated=True)
    assert after(it, 1000, flag) == [("f", "refused", "invalid-target")]
    it.take([said(Kind.CLUSTER_MIGRATION, target=TO_GREEN)], 2000)
    assert (states(it), it.memory.migrations.green) == ({}, GREEN)
    it.take([said(Kind.NAMESPACE_MIGRATION, id="g", name="t/one", migrated=True)], 3000)
    assert states(it) == {"g": "running"}
    it.take([said(Kind.NAMESPACE_MIGRATION, name="t/one")], 4000)
    assert states(it) == {"g": "rolling-back"}


def test_a_web_url_alone_is_refused_and_so_is_an_empty_one() -> None:
    """Pulsar takes an empty body, and refuses one that has web URLs alone only if migrated."""
    it = cluster()
    for target in ({}, {"serviceUrl": "http://green:8080"}):
        [(_, state, rule)] = after(it, 1000, said(Kind.CLUSTER_MIGRATION, target=target))
        assert (state, rule) == ("refused", "invalid-target")


def test_a_rollback_does_not_end_by_counts_from_before_it() -> None:
    """What is terminated between the watcher's look and the rollback is missing in them."""
    it = cluster()
    it.take([start()], 1000)
    row = said(
        Kind.MIGRATION_PROGRESS, migration="m", counts=[{"active": 5}], state="running", wave=0
    )
    it.take([verb(Kind.MIGRATION_ROLL_BACK), row], 2000)
    assert states(it) == {"m": "rolling-back"}


def test_a_wave_does_not_end_by_what_was_seen_of_the_one_before() -> None:
    """Its bundles are not named yet: the last topics of the scope may have been created since."""
    it = cluster()
    it.take([start(waves=[{"scopes": [TOPIC]}])], 1000)
    row = said(
        Kind.MIGRATION_PROGRESS, migration="m", counts=[{"migrated": 1}, {}], state="running"
    )
    it.take([row], 2000)
    it.take([row], 3000)
    assert [(each.state, each.wave) for each in it.memory.migrations.items] == [("running", 1)]


def test_counts_of_a_migration_that_is_forgotten_change_nothing() -> None:
    it = cluster()
    rows, _ = it.take([progress(0, Counts(migrated=1))], 1000)
    assert (told(rows), it.memory.migrations) == ([], Migrations())


def test_a_memory_from_before_migrations_is_read() -> None:
    old = msgspec.msgpack.decode(pack(Memory()))
    del old["migrations"]
    read = unpack(msgspec.msgpack.encode(old), Memory)
    assert (read.migrations, pack(read)) == (Migrations(), pack(Memory()))
    whole = replace(Memory(), migrations=Migrations(GREEN, (Migration("m", "c", CLUSTER, GREEN),)))
    assert unpack(pack(whole), Memory) == whole


def test_the_same_intents_give_the_same_memory_byte_for_byte() -> None:
    rows = [
        start(waves=[{"scopes": [TOPIC], "share": 0.5}]),
        progress(0, Counts(migrated=1), Counts(active=2)),
        verb(Kind.MIGRATION_ROLL_BACK),
    ]
    hashes = set()
    for _ in range(2):
        it = cluster()
        for number, row in enumerate(rows):
            it.take([row], 1000 + number)
        hashes.add(hash_state(it.memory, b"", it.snapshots, it.namespaces))
    assert len(hashes) == 1


def test_old_migrations_are_forgotten_and_those_that_redirect_are_not() -> None:
    kept = Migrations()
    for number in range(MOST + 5):
        it = Migration(str(number), "c", f"t/{number}", GREEN)
        kept = kept.with_item(it)
    assert len(kept.items) == MOST + 5
    for number in range(MOST):
        it = kept.items[number]
        kept = kept.with_item(replace(it, state="rolled-back"))  # type: ignore[arg-type]
    kept = kept.with_item(Migration("last", "c", "t/last", Target(), waves=(Wave(("t/last",)),)))
    assert len(kept.items) == MOST
