"""What only Pulsar does: the parity tool plays it around trimtab's split triggers.

Every expected value is what Pulsar 4.0.8 answered to the case.
"""

from __future__ import annotations

from typing import Any

import pytest

from simulation.parity import answer

LIMITS = {
    "loadBalancerNamespaceBundleMaxTopics": 100,
    "loadBalancerNamespaceBundleSplitConditionHitCountThreshold": 0,
}
HOT = {"topics": 101}
FIRST, SECOND, THIRD, FOURTH = (f"t/ns/0x{i}0000000_0x{i + 1}0000000" for i in range(4))
WHOLE = "0x00000000_0xffffffff"


def instantaneous(*rounds: dict[str, Any], **conf: object) -> list[dict[str, Any]]:
    """Pulsar's answers of the extensible manager; ``conf`` by the ends of Pulsar's keys."""
    case = {
        "id": "1",
        "op": "split_needed_ext",
        "conf": {**LIMITS, **{_key(end): value for end, value in conf.items()}},
        "namespaceBundles": {"t/ns": 16, "t/ns1": 16, "t/ns10": 16},
        "rounds": list(rounds),
    }
    said: list[dict[str, Any]] = answer(case)["rounds"]
    return said


def _key(end: str) -> str:
    return {
        "hits": "loadBalancerNamespaceBundleSplitConditionHitCountThreshold",
        "cap": "loadBalancerMaxNumberOfBundlesToSplitPerCycle",
        "mebibytes": "loadBalancerNamespaceBundleMaxBandwidthMbytes",
        "algorithm": "defaultNamespaceBundleSplitAlgorithm",
    }[end]


def bundles(answered: dict[str, Any]) -> list[str]:
    return [decision["bundle"] for decision in answered["decisions"]]


def test_children() -> None:
    """Acceptance case E12, with the halves."""
    second = "t/ns1/0x00000000_0x0fffffff"
    hot = {"stats": {f"t/ns/{WHOLE}": HOT, second: HOT}}
    said = instantaneous(*[hot] * 5, hits=3, cap=1)
    assert [bundles(each) for each in said] == [[], [], [], [f"t/ns/{WHOLE}"], [second]]
    (first,), (last,) = said[3]["decisions"], said[4]["decisions"]
    assert (first["reason"], first["label"]) == ("Topics", "Success")
    assert first["children"] == ["0x00000000_0x7fffffff", "0x7fffffff_0xffffffff"]
    assert last["children"] == ["0x00000000_0x07ffffff", "0x07ffffff_0x0fffffff"]
    assert said[3]["hitCounts"] == {second: 3}


@pytest.mark.parametrize(
    ("mebibytes", "divided"),
    [
        pytest.param(2047, [], id="2147483648 - 1048576"),
        pytest.param(2048, [FIRST], id="-2147483648: every bundle of two topics"),
        pytest.param(4096, [], id="0: silent bundles stay whole"),
        pytest.param(8191, [FIRST], id="-1048576"),
    ],
)
def test_pulsars_limit_in_bytes_is_a_product_of_ints(mebibytes: int, divided: list[str]) -> None:
    """Acceptance case E15; trimtab's own limit does not wrap (test_split_triggers.py)."""
    silent = {FIRST: {"topics": 2}, SECOND: {"topics": 1}}
    (said,) = instantaneous({"stats": silent}, mebibytes=mebibytes)
    assert bundles(said) == divided
    case = {
        "id": "1",
        "op": "split_needed",
        "conf": {_key("mebibytes"): mebibytes},
        "namespaceBundles": {"t/ns": 16},
        "brokers": {"a:8080": {"lastStats": silent}},
    }
    assert answer(case)["rounds"] == [{"split": dict.fromkeys(divided, "a:8080")}]


@pytest.mark.parametrize(
    ("splitting", "divided"),
    [
        pytest.param("t/ns10", [], id="ns1 waits for ns10"),
        pytest.param("t/ns1", ["t/ns10/0x80000000_0xffffffff"], id="but not ns10 for ns1"),
    ],
)
def test_pulsar_waits_for_namespaces_whose_names_begin_so(
    splitting: str, divided: list[str]
) -> None:
    stats = {"t/ns1/0x00000000_0x80000000": HOT, "t/ns10/0x80000000_0xffffffff": HOT}
    (said,) = instantaneous({"stats": stats, "splitting": [f"{splitting}/{WHOLE}"]})
    assert bundles(said) == divided
    assert said["hitCounts"] == {bundle: 1 for bundle in stats if bundle not in divided}


def topics(*positions: int) -> list[dict[str, str]]:
    return [{"name": f"persistent://t/ns/{at}", "pos": f"0x{at:08x}"} for at in positions]


def test_an_empty_child_ends_the_round() -> None:
    """The first is divided for nothing, the third ends it, the fourth is not even counted."""
    hot = {"stats": dict.fromkeys((FIRST, SECOND, THIRD, FOURTH), HOT)}
    standing = {FIRST: topics(1, 3), THIRD: topics(0x20000000, 0x20000001)}
    _, said = instantaneous(
        hot, {**hot, "topics": standing}, hits=1, algorithm="topic_count_equally_divide"
    )
    assert said == {
        "error": "java.lang.IllegalArgumentException: "
        "Cannot create bundle object for an empty key range",
        "decisions": [],
        "counter": {"Failure.Unknown": 1},
        "hitCounts": {SECOND: 2, THIRD: 2, FOURTH: 1},
    }


def test_failures_are_counted() -> None:
    """An unknown namespace, and a range of one position, which need not even be hot."""
    stats = {"t/who/0x00000000_0x00000008": HOT, "t/ns/0x00000005_0x00000006": {"topics": 2}}
    (said,) = instantaneous({"stats": {**stats, FIRST: HOT}})
    assert bundles(said) == [FIRST]
    assert said["counter"] == {"Failure.Unknown": 2}
    assert said["hitCounts"] == {"t/who/0x00000000_0x00000008": 1}


def test_a_bundle_that_two_brokers_report_counts_twice() -> None:
    """It takes both places below the maximum, and is its last reporter's."""
    case = {
        "id": "1",
        "op": "split_needed",
        "conf": {**LIMITS, "loadBalancerNamespaceMaximumBundles": 6},
        "namespaceBundles": {"t/ns": 4},
        "brokers": {
            "a:8080": {"lastStats": {FIRST: HOT}},
            "b:8080": {"lastStats": {FIRST: HOT, SECOND: HOT}},
        },
    }
    assert answer(case)["rounds"] == [{"split": {FIRST: "b:8080"}}]
