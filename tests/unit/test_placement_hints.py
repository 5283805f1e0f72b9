"""What a round tells lookups of where bundles may go."""

from __future__ import annotations

from collections.abc import Iterable

from tests.support.clusters import Broker, Bundle, view_of
from trimtab.arrays import USAGE
from trimtab.cluster.placement_hints import hints
from trimtab.placement.least_resource_usage import LeastResourceUsageHistory
from trimtab.policies import Isolation, Policies
from trimtab.settings import Settings
from trimtab.state.round_state import Histories
from trimtab.view import View
from trimtab.wire.hints import Hints
from trimtab.wire.ownership import Candidate

SETTINGS = Settings()
NONE = Histories()
POLICIES = Policies(
    isolation={"p": Isolation(namespaces=("t/vip",), primary=("a",))},
    groups={"t/one": "g", "t/two": "g"},
)


def told(view: View, settings: Settings = SETTINGS, histories: Histories = NONE) -> Hints:
    return hints(view, settings, 7, histories)


def names(candidates: Iterable[Candidate]) -> list[str]:
    return [each.broker for each in candidates]


def test_the_idlest_come_first_and_equals_by_name() -> None:
    view = view_of({"a": Broker(0.5), "b": Broker(0.2), "d": Broker(0.2), "c": Broker(0.7)})
    said = told(view)
    assert said.candidates == (("b", 0.2), ("d", 0.2), ("a", 0.5), ("c", 0.7))
    assert (said.round, said.pools, said.groups) == (7, (), {})


def test_brokers_that_are_not_available_or_overloaded_are_left_out() -> None:
    view = view_of({"a": Broker(0.5), "b": Broker(0.1, available=False), "c": Broker(0.9)})
    assert names(told(view).candidates) == ["a"]


def test_overloaded_brokers_are_named_where_there_are_no_others() -> None:
    assert names(told(view_of({"a": Broker(0.95), "b": Broker(0.9)})).candidates) == ["b", "a"]


def test_brokers_of_older_software_or_with_too_many_topics_are_left_out() -> None:
    view = view_of(
        {"a": Broker(0.1, version="4.0.7"), "b": Broker(0.2), "c": Broker(0.1, topics=31)}
    )
    settings = Settings.parse({"placement.prefer_later_versions": True, "placement.max_topics": 30})
    assert names(told(view, settings).candidates) == ["b"]


def test_at_most_64_are_named() -> None:
    view = view_of({f"b{i:02}": Broker(i / 100) for i in range(80)})
    assert names(told(view).candidates) == [f"b{i:02}" for i in range(64)]


def test_a_bundle_stands_for_its_share_of_the_usage_and_for_something_where_all_idle() -> None:
    four = [Bundle() for _ in range(4)]
    assert told(view_of({"a": Broker(0.5, four), "b": Broker(0.25, four)})).each == 0.75 / 8
    assert told(view_of({"a": Broker(0.0, four)})).each == 1e-4
    assert told(view_of({})).each == 1e-4


def test_every_namespace_of_a_policy_has_that_policys_candidates() -> None:
    """However many there are, whichever of its patterns they match, with bundles or without."""
    gold = Isolation(namespaces=("t/vip", "t/gold-.*"), primary=("a", "b"))
    slow = Isolation(namespaces=("u/.*",), primary=("d",))
    many = [f"t/gold-{number:04}" for number in range(1200)]
    bundles = [Bundle(name=f"{namespace}/0x00000000_0xffffffff") for namespace in many]
    view = view_of(
        {"a": Broker(0.2), "b": Broker(0.1), "c": Broker(0.3), "d": Broker(0.4, bundles)},
        Policies(isolation={"gold": gold, "slow": slow}),
    )
    said = told(view)
    for namespace in ["t/vip", "t/gold-new", *many]:
        assert names(said.candidates_for(namespace)) == ["b", "a"]
    assert names(said.candidates_for("u/any")) == ["d"]
    for namespace in ["t/free", "t/vip2", "s/t/vip", "x/gold-1"]:
        assert names(said.candidates_for(namespace)) == names(said.candidates) == ["c"]


def test_the_first_policy_that_matches_applies() -> None:
    two = {
        "p": Isolation(namespaces=("t/vip.*",), primary=("a",)),
        "q": Isolation(namespaces=("t/.*",), primary=("b",)),
    }
    said = told(view_of({"a": Broker(0.1), "b": Broker(0.2)}, Policies(isolation=two)))
    assert names(said.candidates_for("t/vip1")) == ["a"]
    assert names(said.candidates_for("t/other")) == ["b"]


def test_a_namespace_that_may_be_nowhere_is_said_to_be_so() -> None:
    nowhere = Policies(isolation={"p": Isolation(namespaces=("t/vip",), primary=("z",))})
    said = told(view_of({"a": Broker(0.1)}, nowhere))
    assert said.candidates_for("t/vip") == ()


def test_groups_are_named_with_all_their_namespaces() -> None:
    """Also with those that have no bundle yet."""
    assert told(view_of({"a": Broker(0.1)}, POLICIES)).groups == {"g": ("t/one", "t/two")}


def test_failure_domains_are_named_where_groups_spread_over_them() -> None:
    view = view_of({"a": Broker(0.1), "b": Broker(0.2)}, Policies(domains={"a": "x", "z": "y"}))
    by_domain = Settings.parse({"placement.failure_domains": True})
    assert told(view).domains == {}
    assert told(view, by_domain).domains == {"a": "x"}


def measured(placement: str, view: View, histories: Histories = NONE) -> dict[str, float]:
    shedding = "avg" if placement == "avg" else "trimtab"
    settings = Settings.parse({"round.placement": placement, "round.shedding": shedding})
    return dict(told(view, settings, histories).candidates)


def test_loads_are_the_placement_strategys_own_measure() -> None:
    view = view_of(
        {
            "a": Broker(0.5, [Bundle((10.0, 0.0, 0.0, 0.0))]),
            "b": Broker(0.2, [Bundle((40.0, 0.0, 0.0, 0.0))]),
        }
    )
    rates = measured("least-long-term-rate", view)
    assert rates["b"] == 4 * rates["a"] > 1
    assert measured("round-robin", view) == measured("avg", view) == {"a": 0.0, "b": 0.0}
    assert measured("least-predicted-usage", view) == {"a": 0.5, "b": 0.2}


def test_an_average_is_the_load_where_the_strategy_compares_averages() -> None:
    past = Histories(least_resource_usage=LeastResourceUsageHistory({"a": 0.1}))
    view = view_of({"a": Broker(0.5), "b": Broker(0.2)})
    assert measured("least-resource-usage", view, past) == {"a": 0.1, "b": 0.2}
    averages = measured("least-average-usage", view)
    assert averages == dict(zip("ab", view.brokers.averages[USAGE].tolist(), strict=True))
