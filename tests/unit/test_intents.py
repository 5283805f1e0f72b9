"""Isolation policies, anti-affinity groups and failure domains, as intents change them."""

from __future__ import annotations

import pytest

from trimtab.cluster.intents.apply import _EFFECTS, apply_intent
from trimtab.cluster.intents.controls import CONTROLS
from trimtab.cluster.intents.migrations import MIGRATIONS
from trimtab.cluster.intents.policies import POLICIES
from trimtab.cluster.intents.settings import SETTINGS, resolve_settings
from trimtab.intent_rules import IntentRule
from trimtab.policies import NO_POLICIES, Isolation, Policies
from trimtab.settings import Settings
from trimtab.shedding import DEFAULTS
from trimtab.state.memory import Memory
from trimtab.wire.intent import Intent, IntentKind

OWN = Isolation(namespaces=("t/vip.*",), primary=("big-.*",), min_available=2)


def after(*intents: Intent) -> Memory:
    memory = Memory()
    for intent in intents:
        memory = apply_intent(memory, intent, Settings(), 0, 0).memory
    return memory


def isolation(name: str, policy: Isolation | None) -> Intent:
    return Intent(id="1", kind=IntentKind.ISOLATION, cluster="c", name=name, isolation=policy)


def group(namespace: str, name: str) -> Intent:
    return Intent(id="1", kind=IntentKind.ANTI_AFFINITY, cluster="c", name=namespace, group=name)


def domain(name: str, *brokers: str) -> Intent:
    return Intent(id="1", kind=IntentKind.FAILURE_DOMAIN, cluster="c", name=name, brokers=brokers)


def test_an_isolation_policy_is_set_and_ended() -> None:
    assert after(isolation("vip", OWN)).policies == Policies(isolation={"vip": OWN})
    assert after(isolation("vip", OWN), isolation("vip", None)).policies == NO_POLICIES


def test_of_policies_the_first_by_name_counts() -> None:
    """In whatever order they came."""
    other = Isolation(namespaces=("t/.*",), primary=("small-.*",))
    policies = after(isolation("b", other), isolation("a", OWN)).policies
    assert policies.isolation_of("t/vip-1") == OWN
    assert policies.isolation_of("t/else") == other


def test_a_namespace_joins_a_group_and_leaves_it() -> None:
    assert after(group("t/n", "G")).policies.group_of("t/n") == "g"
    assert after(group("t/n", "G"), group("t/n", "")).policies == NO_POLICIES


def test_a_namespace_that_joins_another_group_leaves_its_first() -> None:
    """Item 002-53 of docs/pulsar-coverage.md."""
    policies = after(group("t/n", "g"), group("t/m", "g"), group("t/n", "h")).policies
    assert policies.groups == {"t/n": "h", "t/m": "g"}


def test_a_broker_is_in_one_domain() -> None:
    """Item 002-55 of docs/pulsar-coverage.md: a second domain is refused as a whole."""
    memory = after(domain("north", "a:1", "b:1"), domain("south", "b:1", "c:1"))
    assert memory.policies.domains == {"a:1": "north", "b:1": "north"}
    assert memory.problems == ["intent 1: brokers: b:1 is in north; set north without it first"]


def test_a_broker_that_left_its_domain_may_join_another() -> None:
    given = domain("north", "a:1", "b:1"), domain("north", "a:1"), domain("south", "b:1")
    assert after(*given).policies.domains == {"a:1": "north", "b:1": "south"}


def test_a_domain_is_what_was_last_said_of_it() -> None:
    assert after(domain("north", "a:1", "b:1"), domain("north", "b:1")).policies.domains == {
        "b:1": "north"
    }


@pytest.mark.parametrize(
    ("policy", "problems"),
    [
        pytest.param(
            Isolation(namespaces=("(",), primary=("[",), min_available=-1),
            ["isolation.min_available", "isolation.namespaces", "isolation.primary"],
            id="all at once",
        ),
        pytest.param(Isolation(namespaces=("*",), primary=()), ["isolation.namespaces"], id="star"),
    ],
)
def test_a_policy_that_cannot_be_is_a_problem_and_no_policy(
    policy: Isolation, problems: list[str]
) -> None:
    memory = after(isolation("vip", policy))
    assert memory.policies == NO_POLICIES
    assert [problem.split(": ")[1] for problem in memory.problems] == problems


def test_what_names_nothing_is_a_problem() -> None:
    memory = after(group("", "g"))
    assert memory.policies == NO_POLICIES
    assert memory.problems == ["intent 1: name: says nothing of what it is about"]


def test_every_kind_of_intent_has_one_effect() -> None:
    """A kind without one must not be taken for another."""
    kinds = [*_EFFECTS, *POLICIES, *SETTINGS, *CONTROLS, *MIGRATIONS]
    assert sorted(kinds) == sorted(IntentKind), (
        "trimtab/cluster/intents/: controls.py, migrations.py, policies.py and settings.py have "
        "a table each, apply.py has the rest"
    )


@pytest.mark.parametrize(
    "kind", sorted({*IntentKind} - {IntentKind.PAUSE, IntentKind.RESUME, IntentKind.RESET})
)
def test_an_intent_about_less_than_a_cluster_needs_a_subject(kind: IntentKind) -> None:
    applied = apply_intent(Memory(), Intent(id="1", kind=kind, cluster="c"), DEFAULTS, 0, 0)
    assert applied.refused is not None, f"name the subject of {kind} in cluster/intents/flaws.py"
    assert applied.refused.rule is IntentRule.NO_SUBJECT


@pytest.mark.parametrize(
    "caution",
    [
        {"round.observe_only": True},
        {"round.enabled": False},
        {"loadBalancerSheddingEnabled": False},
    ],
    ids=lambda each: next(iter(each)),
)
def test_what_keeps_the_job_from_acting_outlasts_a_file_that_contradicts_another_change(
    caution: dict[str, str | int | float | bool],
) -> None:
    memory = Memory(overrides={"avg.low_threshold": 30.0, **caution})
    restarted = DEFAULTS.changed({"avg.high_threshold": 20.0, "avg.low_threshold": 10.0})
    settings, problems = resolve_settings(memory, restarted)
    assert settings.round.observe_only or not settings.round.enabled
    assert settings.avg.low_threshold == 10.0
    assert problems
