"""What a round tells lookups of where bundles may go."""

from __future__ import annotations

from collections.abc import Iterable

from tests.support.clusters import Broker, Bundle, view_of
from trimtab.cluster.placement_hints import hints
from trimtab.policies import Isolation, Policies
from trimtab.settings import Settings
from trimtab.view import View
from trimtab.wire.hints import Hints
from trimtab.wire.ownership import Candidate

SETTINGS = Settings()
POLICIES = Policies(
    isolation={"p": Isolation(namespaces=("t/vip",), primary=("a",))},
    groups={"t/one": "g", "t/two": "g"},
)


def told(view: View, namespaces: Iterable[str] = (), settings: Settings = SETTINGS) -> Hints:
    return hints(view, settings, namespaces, 7)


def names(candidates: Iterable[Candidate]) -> list[str]:
    return [each.broker for each in candidates]


def test_the_idlest_come_first_and_equals_by_name() -> None:
    view = view_of({"a": Broker(0.5), "b": Broker(0.2), "d": Broker(0.2), "c": Broker(0.7)})
    said = told(view)
    assert said.candidates == (("b", 0.2), ("d", 0.2), ("a", 0.5), ("c", 0.7))
    assert (said.round, said.namespaces) == (7, {})


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
    assert names(told(view, settings=settings).candidates) == ["b"]


def test_at_most_64_are_named() -> None:
    view = view_of({f"b{i:02}": Broker(i / 100) for i in range(80)})
    assert names(told(view).candidates) == [f"b{i:02}" for i in range(64)]


def test_a_bundle_stands_for_its_share_of_the_usage_and_for_something_where_all_idle() -> None:
    four = [Bundle() for _ in range(4)]
    assert told(view_of({"a": Broker(0.5, four), "b": Broker(0.25, four)})).each == 0.75 / 8
    assert told(view_of({"a": Broker(0.0, four)})).each == 1e-4
    assert told(view_of({})).each == 1e-4


def test_namespaces_under_a_policy_are_named_and_only_those() -> None:
    on_b = Bundle(name="t/one/0x00000000_0xffffffff")
    view = view_of({"a": Broker(0.1), "b": Broker(0.2, [on_b]), "c": Broker(0.3)}, POLICIES)
    said = told(view, ["t/vip", "t/two", "t/free"])
    assert {name: names(found) for name, found in said.namespaces.items()} == {
        "t/vip": ["a"],
        "t/two": ["c"],
    }
    assert names(said.candidates_for("t/free")) == ["b", "c"]


def test_a_namespace_that_may_be_nowhere_is_said_to_be_so() -> None:
    nowhere = Policies(isolation={"p": Isolation(namespaces=("t/vip",), primary=("z",))})
    said = told(view_of({"a": Broker(0.1)}, nowhere), ["t/vip"])
    assert said.namespaces == {"t/vip": ()}


def test_at_most_a_thousand_namespaces_are_named() -> None:
    everything = Policies(isolation={"p": Isolation(namespaces=("t/.*",), primary=("a",))})
    view = view_of({"a": Broker(0.1)}, everything)
    said = told(view, [f"t/{i:04}" for i in range(1200)])
    assert list(said.namespaces) == [f"t/{i:04}" for i in range(1000)]
