"""Requests about brokers, bundles and policies that do not exist are refused by their rule."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from tests.support.clusters_by_rows import change_row, cluster, held, said, snapshot_row
from tests.support.fleets import EIGHTHS, fleet, two_each
from trimtab.cluster.operator import Cluster
from trimtab.ownership import State
from trimtab.policies import Isolation
from trimtab.wire.intent import IntentKind, decode_intent
from trimtab.wire.rows import DeadLetter, Row, Tag, parse_rows


def refusals(it: Cluster, *rows: Row) -> list[DeadLetter]:
    out = it.receive(rows, 1000)[1]
    return [
        msgspec.json.decode(r.payload, type=DeadLetter) for r in out if r.tag == Tag.DEAD_LETTER
    ]


def after_a_round() -> Cluster:
    it = two_each()
    held(it, 1000)
    return it


@pytest.mark.parametrize("kind", [IntentKind.DRAIN, IntentKind.UNDRAIN])
def test_a_verb_on_an_unknown_broker_names_those_like_it(kind: IntentKind) -> None:
    it = after_a_round()
    before = it.memory.liveness
    (letter,) = refusals(it, said(kind, id="1", broker="aa:1"))
    assert (letter.reason, letter.rule) == ("refused-intent", "unknown-broker")
    assert letter.detail == "broker: aa:1 is not known; did you mean a:1?"
    assert (letter.topic, letter.offset) == ("trimtab.control", 1)
    assert it.memory.liveness == before
    assert held(it, 2000).problems == (f"intent 1: {letter.detail}",)


def test_a_broker_unlike_all_is_answered_with_its_neighbours() -> None:
    (letter,) = refusals(
        after_a_round(), said(IntentKind.DRAIN, broker="big-broker-7.example:8080")
    )
    assert letter.detail.endswith("is not known; there is b:1, c:1, d:1 and others")


def test_a_cluster_without_brokers_says_so() -> None:
    it = cluster()
    held(it, 1000)
    (letter,) = refusals(it, said(IntentKind.DRAIN, broker="a:1"))
    assert letter.detail == "broker: a:1 is not known; there is none"


def test_before_its_first_round_a_cluster_takes_any_broker() -> None:
    """A job that starts from nothing reads a drain before the reports of that broker."""
    it = cluster()
    assert refusals(it, said(IntentKind.DRAIN, broker="a:1")) == []
    assert it.memory.liveness.draining == {"a:1"}


@pytest.mark.parametrize(
    "known",
    [
        pytest.param([snapshot_row("e:1", {})], id="reports in the same batch"),
        pytest.param([said(IntentKind.BROKER_LOST, broker="e:1")], id="is lost"),
    ],
)
def test_a_broker_is_known_that(known: list[Row]) -> None:
    it = after_a_round()
    assert refusals(it, *known, said(IntentKind.DRAIN, at_ms=1, broker="e:1")) == []


def test_an_owner_that_never_reported_is_known() -> None:
    it = fleet(dict.fromkeys(EIGHTHS, "a:1"))
    it.receive([change_row(EIGHTHS[0], "e:1", 2)], 1000)
    held(it, 1000)
    assert refusals(it, said(IntentKind.DRAIN, broker="e:1")) == []


def test_a_forgotten_broker_that_drains_can_be_used_again() -> None:
    it = after_a_round()
    it.receive([said(IntentKind.DRAIN, broker="a:1")], 1000)
    appended = {b: ms for b, ms in it.memory.appended.items() if b != "a:1"}
    it.memory = replace(it.memory, appended=appended)
    it.namespaces.clear()
    assert refusals(it, said(IntentKind.UNDRAIN, broker="a:1")) == []
    assert it.memory.liveness.draining == frozenset()


@pytest.mark.parametrize(
    ("bundle", "rule", "says"),
    [
        (EIGHTHS[0], "not-quarantined", "is not quarantined, but Owned"),
        (f"{EIGHTHS[0][:-1]}1", "unknown-bundle", f"did you mean {EIGHTHS[0]}"),
        ("t/other/0x00000000_0xffffffff", "unknown-bundle", "no bundle of t/other is; "),
        ("nonsense", "unknown-bundle", "there is t/ns"),
    ],
)
def test_readmitting_what_is_not_quarantined(bundle: str, rule: str, says: str) -> None:
    it = after_a_round()
    (letter,) = refusals(it, said(IntentKind.READMIT, bundle=bundle))
    assert letter.rule == rule
    assert says in letter.detail
    assert it.memory.readmitted == ()


def test_a_bundle_that_was_split_is_unknown_and_not_offered() -> None:
    it = after_a_round()
    it.receive([change_row(EIGHTHS[0], None, 2, State.DELETED)], 1000)
    (letter,) = refusals(it, said(IntentKind.READMIT, bundle=EIGHTHS[0]))
    assert letter.rule == "unknown-bundle"
    assert f"mean {EIGHTHS[0]}" not in letter.detail


def test_a_quarantined_bundle_is_readmitted() -> None:
    it = after_a_round()
    it.receive([change_row(EIGHTHS[0], None, 2, State.QUARANTINED)], 1000)
    assert refusals(it, said(IntentKind.READMIT, bundle=EIGHTHS[0])) == []


@pytest.mark.parametrize(
    ("made", "deleted"),
    [
        pytest.param(
            {"isolation": msgspec.to_builtins(Isolation(namespaces=("t/.*",), primary=("a",)))},
            {},
            id="isolation",
        ),
        pytest.param({"group": "g"}, {"group": ""}, id="anti-affinity"),
        pytest.param({"brokers": ["absent:1"]}, {"brokers": []}, id="failure-domain"),
    ],
)
def test_only_a_policy_that_exists_is_deleted(
    made: dict[str, object], deleted: dict[str, object], request: pytest.FixtureRequest
) -> None:
    """It may name brokers and namespaces that are not there yet."""
    kind = IntentKind(request.node.callspec.id)
    it = after_a_round()
    assert refusals(it, said(kind, 0, name="north", **made)) == []
    (letter,) = refusals(it, said(kind, 0, name="nort", **deleted))
    assert letter.rule == "unknown-policy"
    assert letter.detail == f"name: nort has no {kind.value} to delete; did you mean north?"
    assert refusals(it, said(kind, 0, name="north", **deleted)) == []


def test_a_split_by_an_algorithm_that_is_not_allowed_is_refused() -> None:
    """Item 000-29 of docs/pulsar-coverage.md."""
    it = after_a_round()
    allowed = {"split.supported": "range_equally_divide"}
    assert refusals(it, said(IntentKind.SETTINGS, settings=allowed)) == []
    split = said(IntentKind.SPLIT, bundle=EIGHTHS[0], algorithm="topic_count_equally_divide")
    (letter,) = refusals(it, split)
    assert letter.rule == "invalid-split"
    assert "topic_count_equally_divide is not in split.supported" in letter.detail


def test_another_split_of_a_bundle_waits_for_the_round() -> None:
    """The same once more is a repeat."""
    it = after_a_round()
    first = said(IntentKind.SPLIT, bundle=EIGHTHS[0], positions=[0x11000000])
    assert refusals(it, first) == []
    assert refusals(it, first) == []
    (letter,) = refusals(it, said(IntentKind.SPLIT, bundle=EIGHTHS[0]))
    assert (letter.rule, letter.detail[:21]) == ("conflict", "bundle: a split by 0x")
    assert refusals(it, said(IntentKind.SPLIT, bundle=EIGHTHS[1])) == []


def test_an_impossible_policy_is_refused_with_all_that_is_wrong() -> None:
    policy = {"namespaces": ["("], "primary": ["["], "min_available": -1}
    (letter,) = refusals(after_a_round(), said(IntentKind.ISOLATION, name="p", isolation=policy))
    assert letter.rule == "invalid-policy"
    assert len(letter.detail.split("; ")) == 3


@pytest.mark.parametrize(
    ("members", "rule", "says"),
    [
        ({"bundle": ""}, "no-subject", "bundle: says nothing"),
        ({"bundle": "t/ns/nonsense"}, "invalid-split", "bundle: "),
        ({"bundle": "t/ns/0x00000000_0x00000001"}, "invalid-split", "too small"),
        ({"bundle": "t/none/0x00000000_0x40000000"}, "unknown-bundle", "is not known"),
        ({"algorithm": "in_half"}, "invalid-split", "in_half is not in split.supported"),
        ({"algorithm": "specified_positions_divide"}, "invalid-split", "needs some"),
        (
            {"algorithm": "range_equally_divide", "positions": [1]},
            "invalid-split",
            "no other algorithm reads them",
        ),
        ({"positions": [0]}, "invalid-split", "0x00000000 does not lie inside"),
        ({"positions": [0x20000000]}, "invalid-split", "0x20000000 does not lie inside"),
        ({"positions": [-1]}, "invalid-split", "does not lie inside"),
        ({"positions": [5, 5]}, "invalid-split", "two are equal"),
    ],
)
def test_a_split_that_cannot_be_is_refused(members: dict[str, Any], rule: str, says: str) -> None:
    it = after_a_round()
    asked: dict[str, Any] = {"bundle": EIGHTHS[0]} | members
    (letter,) = refusals(it, said(IntentKind.SPLIT, **asked))
    assert (letter.rule, says in letter.detail) == (rule, True)
    assert it.memory.round.asked == {}


def policy(*patterns: str) -> dict[str, Any]:
    return {"name": "p", "isolation": {"namespaces": patterns, "primary": ["a"]}}


@pytest.mark.parametrize(
    ("kind", "members", "says"),
    [
        pytest.param(
            IntentKind.SETTINGS,
            {"settings": {f"round.intervl{i}": 1 for i in range(501)}},
            "too-large: settings: has more than 500 entries",
            id="a setting more than is compared with all",
        ),
        pytest.param(
            IntentKind.RESET,
            {"names": [f"round.intervl{i}" for i in range(501)]},
            "too-large: names: has more than 500 entries",
            id="the same of a reset",
        ),
        pytest.param(
            IntentKind.FAILURE_DOMAIN,
            {"name": "x" * 2049, "brokers": ["a:1"]},
            "too-large: name: has more than 2048 characters",
            id="a name that each round would carry",
        ),
        pytest.param(
            IntentKind.SPLIT,
            {"bundle": EIGHTHS[0], "positions": list(range(1025))},
            "too-large: positions: has more than 1024 entries",
            id="a problem for each position",
        ),
        pytest.param(
            IntentKind.FAILURE_DOMAIN,
            {"name": "n", "brokers": ["x" * 2049]},
            "too-large: brokers: one has more than 2048 characters",
            id="a broker that each round would carry",
        ),
        pytest.param(
            IntentKind.ISOLATION,
            policy("(" * 900),
            "invalid-policy: isolation.namespaces: '((",
            id="a pattern deeper than the stack",
        ),
        pytest.param(
            IntentKind.ISOLATION,
            policy("a{99999999999999999999}"),
            "is no regular expression: the repetition number is too large",
            id="a number beyond 32 bits",
        ),
        pytest.param(
            IntentKind.ISOLATION,
            policy(r"(\w+-?)+/x"),
            "repeats a repetition",
            id="a pattern that never ends",
        ),
        *(
            pytest.param(IntentKind.ISOLATION, policy(never), "repeats a repetition", id=never)
            for never in (
                "(a|a)+",
                "((a+))+",
                "(a+|b)*",
                r"(?:\w|\d)+x",
                "(a?a?)+",
                "(?P<n>|a){9,}",
            )
        ),
        pytest.param(
            IntentKind.ISOLATION,
            policy(*(f"t/n{i}" for i in range(500))),
            "isolation: has more than 500 patterns",
            id="patterns that outgrow the cache",
        ),
    ],
)
def test_no_intent_keeps_the_rounds_busy(
    kind: IntentKind, members: dict[str, Any], says: str
) -> None:
    it = after_a_round()
    policies = it.memory.policies
    (letter,) = refusals(it, said(kind, **members))
    assert says in f"{letter.rule}: {letter.detail}"
    assert it.memory.policies == policies


@pytest.mark.parametrize(
    "pattern",
    ["t/.*", "(shop|store)-[a-z]+/.*", r"t/n(\d+|x{2})", "(?:a|b)+/c", "((eu|us)-)+x", "(a|[(]+)x"],
)
def test_common_patterns_are_taken(pattern: str) -> None:
    it = after_a_round()
    assert refusals(it, said(IntentKind.ISOLATION, **policy(pattern))) == []


def test_what_is_told_of_a_giant_is_short() -> None:
    it = after_a_round()
    out, _ = it.take([said(IntentKind.SETTINGS, settings={"x" * 900_000: 1})], 2000)
    assert max(len(row.payload) for row in out) < 2000


@pytest.mark.parametrize(
    ("key", "says"),
    [
        ("", "the Kafka key names no cluster, the record says 'c'"),
        ("d", "the Kafka key is of cluster 'd', the record says 'c'"),
    ],
)
def test_a_record_under_a_wrong_key_is_told_which(key: str, says: str) -> None:
    payload = said(IntentKind.PAUSE).payload
    row = Row(key, Tag.INTENT, "trimtab.control/0/1", payload, 0)
    _, (letter,) = parse_rows([row], decode_intent)
    detail = msgspec.json.decode(letter.payload, type=DeadLetter).detail
    assert detail == f"{says}; write it with its own cluster as the key"
