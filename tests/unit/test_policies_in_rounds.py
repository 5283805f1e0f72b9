"""What isolation policies and anti-affinity groups let a round do."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tests.support.clusters import Broker, Bundle, view_of
from tests.support.pulsar import PULSAR
from trimtab.plan import Plan
from trimtab.policies import Isolation, Policies
from trimtab.reasons import Rule
from trimtab.round.decide import decide
from trimtab.settings import Settings
from trimtab.state.round_state import RoundState

HEAVY = Bundle((0, 0, 2e7, 2e7), name="t/one/0x00000000_0x40000000")
OTHERS = [Bundle((0, 0, 1e7, 0), name=f"t/one/0x{i}0000000_0x{i + 1}0000000") for i in (4, 5)]


def planned(
    brokers: Mapping[str, Broker], policies: Policies, settings: Mapping[str, object] | None = None
) -> Plan:
    """A round on a fleet whose broker ``hot:1`` wants to shed HEAVY."""
    hot = Broker(0.9, [HEAVY, *OTHERS])
    view = view_of({"hot:1": hot, **brokers}, policies)
    rng = np.random.default_rng(1)
    plan, _ = decide(view, RoundState(), Settings.parse({**PULSAR, **(settings or {})}), 0, rng)
    return plan


def destinations(plan: Plan) -> list[str]:
    return [move.destination for move in plan.moves]


def rules(plan: Plan) -> list[Rule]:
    return [refusal.rule for refusal in plan.refusals]


def own(*primary: str, secondary: tuple[str, ...] = (), least: int = 1) -> Policies:
    policy = Isolation(("t/one",), primary, secondary, least)
    return Policies(isolation={"own": policy})


IDLE = Broker(0.1, [Bundle(name="t/two/0x00000000_0xffffffff")])


def test_an_isolated_namespace_stays_on_its_brokers() -> None:
    plan = planned({"cold:1": Broker(0.05, [Bundle()]), "mine:1": IDLE}, own("hot", "mine"))
    assert destinations(plan) == ["mine:1"]


def test_a_namespace_whose_brokers_are_all_taken_stays() -> None:
    plan = planned({"cold:1": IDLE}, own("hot"))
    assert (destinations(plan), rules(plan)) == ([], [Rule.ISOLATED])


def test_secondary_brokers_serve_while_there_are_too_few_primary_ones() -> None:
    few = own("hot", secondary=("spare",), least=2)
    enough = own("hot", secondary=("spare",), least=1)
    fleet = {"cold:1": IDLE, "spare:1": IDLE}
    assert destinations(planned(fleet, few)) == ["spare:1"]
    assert rules(planned(fleet, enough)) == [Rule.ISOLATED]


def test_other_namespaces_keep_off_reserved_brokers() -> None:
    reserved = Policies(isolation={"own": Isolation(("t/else",), ("cold",))})
    assert destinations(planned({"cold:1": IDLE, "free:1": IDLE}, reserved)) == ["free:1"]


def test_a_broker_without_persistent_topics_gets_nothing() -> None:
    fleet = {"cold:1": Broker(0.1, [Bundle()], persistent=False), "free:1": IDLE}
    assert destinations(planned(fleet, Policies())) == ["free:1"]


GROUP = Policies(groups={"t/one": "db", "t/two": "DB"})


def test_a_bundle_goes_where_none_of_its_group_is() -> None:
    fleet = {"cold:1": IDLE, "free:1": Broker(0.3, [Bundle(name="t/x/0x00000000_0xffffffff")])}
    assert destinations(planned(fleet, GROUP)) == ["free:1"]


def test_a_bundle_stays_while_its_group_stands_evenly() -> None:
    plan = planned({"cold:1": IDLE}, GROUP)
    assert (destinations(plan), rules(plan)) == ([], [Rule.ANTI_AFFINITY])


def test_a_group_spreads_over_failure_domains_first() -> None:
    """``b:1`` is empty, but next to ``a:1``, which has one of the group; ``c:1`` has one alone."""
    two = Bundle(name="t/two/0x00000000_0x10000000")
    three = Bundle(name="t/two/0x10000000_0x20000000")
    other = Bundle(name="t/x/0x00000000_0xffffffff")
    fleet = {"a:1": Broker(0.1, [two]), "b:1": Broker(0.2, [other]), "c:1": Broker(0.2, [other])}
    policies = Policies(groups=GROUP.groups, domains={"a:1": "north", "b:1": "north"})
    settings = {"placement.failure_domains": True}
    assert destinations(planned(fleet, policies, settings)) == ["c:1"]
    fleet["c:1"] = Broker(0.2, [three])
    assert destinations(planned(fleet, policies, settings)) == ["b:1"]


def test_the_newest_version_is_preferred_if_so_wished() -> None:
    new = Broker(0.2, [Bundle(name="t/x/0x00000000_0xffffffff")], version="4.1.0")
    wished = {"placement.prefer_later_versions": True}
    assert destinations(planned({"cold:1": IDLE, "new:1": new}, Policies(), wished)) == ["new:1"]


def test_an_unreadable_version_switches_the_preference_off() -> None:
    """Only that: the anti-affinity group still keeps the bundle off ``cold:1``."""
    new = Broker(0.3, [Bundle(name="t/x/0x00000000_0xffffffff")], version="4.1.0")
    odd = Broker(0.2, [Bundle(name="t/y/0x00000000_0xffffffff")], version="nightly")
    plan = planned(
        {"cold:1": IDLE, "new:1": new, "odd:1": odd},
        GROUP,
        {"placement.prefer_later_versions": True, "round.placement": "least-resource-usage"},
    )
    assert set(destinations(plan)) <= {"new:1", "odd:1"}


def test_a_broker_of_another_load_manager_is_passed_over() -> None:
    fleet = {
        "cold:1": Broker(0.1, [Bundle()], load_manager="Other"),
        "free:1": Broker(0.2, [Bundle()], load_manager="Ours"),
    }
    wanted = {"placement.load_manager": "Ours"}
    assert destinations(planned(fleet, Policies(), wanted)) == ["free:1"]
