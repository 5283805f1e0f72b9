"""Every wish of the planner is granted as it stands, whatever the policies; and none does harm."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from tests.planner.views import carrying, later, wished
from tests.support.clusters import Broker, Bundle, cluster, throughputs, view_of
from tests.support.granting import disposed
from trimtab.arrays import Ints
from trimtab.filters.isolation import Permits
from trimtab.load_model.fleet import Fleet
from trimtab.load_model.history import PlannerHistory
from trimtab.plan import ShedWish
from trimtab.planner import shed
from trimtab.planner.groups import count_needed
from trimtab.planner.outlook import look_ahead
from trimtab.policies import Isolation, Policies
from trimtab.reasons import Reason, Rule
from trimtab.settings import Settings
from trimtab.view import View, available_part

BROKERS = "abcdefgh"
NAMESPACES = [f"t/{number}" for number in range(6)]


@st.composite
def policies(draw: st.DrawFn) -> Policies:
    """Mostly groups; brokers are hosts without a port."""
    hosts = st.lists(st.sampled_from(["[a-c]", "[d-h]", "a", "b|d", "z"]), max_size=2).map(tuple)
    isolation = st.builds(
        Isolation,
        namespaces=st.sampled_from([("t/0",), ("t/[0-2]",), ("x/.*",)]),
        primary=hosts,
        secondary=hosts,
        min_available=st.integers(1, 3),
    )
    member = st.sampled_from(NAMESPACES)
    return Policies(
        isolation=draw(st.dictionaries(st.sampled_from(["p", "q"]), isolation)),
        groups=draw(st.dictionaries(member, st.sampled_from(["g", "G", "h"]))),
        domains=draw(st.dictionaries(st.sampled_from(BROKERS), st.sampled_from(["d1", "d2"]))),
    )


@st.composite
def views(draw: st.DrawFn) -> View:
    """Brokers whose usage comes of their bundles, and of load without a bundle."""
    brokers = {}
    names = draw(st.lists(st.sampled_from(BROKERS), min_size=2, max_size=8, unique=True))
    for at, name in enumerate(names):
        loads = draw(st.lists(st.sampled_from([0.0, 0.01, 0.02, 0.05, 0.2]), max_size=8))
        bundles = [
            Bundle(
                (0.0, 0.0, load * 1e9, load * 1e9),
                name=f"{draw(st.sampled_from(NAMESPACES))}/0x{at:04x}{row:04x}_0xffffffff",
                topics=draw(st.integers(1, 20)),
                movable=draw(st.integers(0, 9)) > 0,
                going_to=draw(st.sampled_from([None] * 12 + names[:1])),
            )
            for row, load in enumerate(loads)
        ]
        brokers[name] = Broker(
            usage=sum(loads) + draw(st.sampled_from([0.0, 0.0, 0.1])),
            bundles=bundles,
            topics=draw(st.integers(0, 60)),
            available=draw(st.integers(0, 9)) > 0,
            version=draw(st.sampled_from(["4.0.8", "4.0.8", "4.1.0", "nightly"])),
            load_manager=draw(st.sampled_from(["", "Ours", "Other"])),
            persistent=draw(st.integers(0, 9)) > 0,
        )
    return available_part(view_of(brokers, draw(policies())))


@st.composite
def settings(draw: st.DrawFn) -> Settings:
    return Settings.parse(
        {
            "planner.effort": 20_000,
            "planner.target": draw(st.sampled_from([0.01, 0.05])),
            "placement.max_topics": draw(st.sampled_from([30, 60, 50_000])),
            "placement.failure_domains": draw(st.booleans()),
            "placement.prefer_later_versions": draw(st.integers(0, 3)) == 0,
            "placement.load_manager": draw(st.sampled_from(["", "", "Ours"])),
        }
    )


class Round(NamedTuple):
    view: View
    fleet: Fleet
    wishes: list[ShedWish]


def rounds(view: View, chosen: Settings) -> Iterator[Round]:
    """Two rounds on the same fleet: the first knows nothing of noise and only parts groups."""
    history = PlannerHistory()
    for number in range(2 if len(view.brokers.names) else 0):
        seen = later(view, number)
        fleet = look_ahead(seen, history, chosen)[0].fleet
        wishes, history = shed(seen, history, chosen)
        yield Round(seen, fleet, list(wishes))


@given(views(), settings())
def test_every_wish_is_granted_as_it_stands(view: View, chosen: Settings) -> None:
    for seen, _, wishes in rounds(view, chosen):
        plan = disposed(seen, wishes, chosen)
        assert not plan.refusals
        names = seen.brokers.names
        assert [(move.source, move.destination) for move in plan.moves] == [
            (names[wish.source], names[wish.destination or 0]) for wish in wishes
        ]


@given(views(), settings())
def test_no_group_is_crowded_more_than_before(view: View, chosen: Settings) -> None:
    for seen, _, wishes in rounds(view, chosen):
        before = crowding(seen, seen.intended)
        where = seen.intended.copy()
        for wish in wishes:
            assert wish.destination is not None
            where[wish.bundle] = wish.destination
        assert crowding(seen, where) <= before


def crowding(view: View, where: Ints) -> int:
    """Namespaces that share a broker with others of their group, beyond need."""
    spaces, permits = view.bundles.namespaces, Permits(view.policies, view.brokers)
    rows = zip(view.bundles.namespace.tolist(), where.tolist(), strict=True)
    pairs = {(group, at, space) for space, at in rows if (group := group_of(view, space))}
    namespaces: dict[str, set[str]] = {}
    for group, _, space in pairs:
        namespaces.setdefault(group, set()).add(spaces[space])
    places = {
        group: min(int(permits.of(s, view.brokers.available).sum()) for s in members)
        for group, members in namespaces.items()
    }
    held = Counter((group, broker) for group, broker, _ in pairs)
    return sum(
        max(count - count_needed(len(namespaces[group]), places[group]), 0)
        for (group, _), count in held.items()
    )


def group_of(view: View, space: int) -> str | None:
    return view.policies.group_of(view.bundles.namespaces[space])


@given(views(), settings())
def test_groups_come_first_and_the_rest_passes_no_peak(view: View, chosen: Settings) -> None:
    for _, fleet, wishes in rounds(view, chosen):
        reasons = [wish.reason for wish in wishes]
        assert reasons == sorted(reasons, key=lambda reason: reason is not Reason.SPREAD_GROUP)
        usage, peak = fleet.usage.copy(), float(fleet.usage.max())
        for wish in wishes:
            assert wish.destination is not None
            load = fleet.size[wish.bundle] * fleet.gain
            usage[wish.destination] += load[wish.destination]
            if wish.reason is Reason.SPREAD_GROUP:
                peak = max(peak, float(usage[wish.destination]))
            assert usage[wish.destination] <= peak + 1e-6
            usage[wish.source] -= load[wish.source]


def test_a_group_is_asked_for_once() -> None:
    """What is on its way counts where it goes."""
    view = available_part(
        view_of(
            {
                "a": Broker(0.3, [Bundle((0, 0, 1e8, 0), name="t/0/0x00000000_0x00000001")]),
                "b": Broker(0.2, [Bundle((0, 0, 1e8, 0), name="t/2/0x00000000_0x00000001")]),
                "c": Broker(
                    0.5,
                    [
                        Bundle((0, 0, 1e8, 0), name="t/1/0x00000000_0x00000001", going_to="b"),
                        Bundle((0, 0, 1e8, 0), name="t/3/0x00000000_0x00000001"),
                    ],
                ),
            },
            Policies(groups={"t/1": "g", "t/3": "g"}),
        )
    )
    wishes, _ = shed(view, PlannerHistory(), Settings())
    assert list(wishes) == []


def test_a_fleet_that_empties_while_bundles_are_on_their_way_is_looked_at() -> None:
    full = cluster(hot=Broker(0.9, throughputs(*[4e7] * 12)), cold=Broker(0.0, throughputs(1.0)))
    history = PlannerHistory()
    for minute in range(3):
        wishes, history = shed(later(full, minute), history, Settings())
    assert wishes or history.sent
    idle = later(cluster(hot=Broker(0.0), cold=Broker(0.0)), 4)
    assert shed(idle, history, Settings())[0] == []


def test_brokers_whose_traffic_costs_nothing_do_no_harm() -> None:
    """What is busy carries nothing, and what carries is not busy."""
    fleet = cluster(
        busy=Broker(0.9), a=Broker(0.0, throughputs(*[4e7] * 12)), b=Broker(0.0, throughputs(1e7))
    )
    history = PlannerHistory()
    for minute in range(3):
        wishes, history = shed(later(fleet, minute), history, Settings())
        assert wishes == []


def test_a_last_bundle_may_go_where_the_same_plan_brings_another() -> None:
    view = carrying({"a": [("t/0", 0.6)], "b": [("t/1", 0.1)] * 3})
    goes, comes = (ShedWish(row, row, Reason.OUT_OF_RANGE, 1 - row) for row in (0, 1))
    for wishes in ([goes, comes], [comes, goes]):
        assert len(disposed(view, wishes).moves) == 2
    elsewhere, refused = replace(comes, destination=1), replace(comes, source=0)
    for wishes in ([goes], [goes, goes], [goes, elsewhere], [goes, refused]):
        plan = disposed(view, wishes)
        assert plan.moves == ()
        assert Rule.LAST_BUNDLE in {refusal.rule for refusal in plan.refusals}


def test_a_giant_does_not_keep_the_other_brokers_apart() -> None:
    view = carrying({"a": [("t/0", 3.0)], "b": [("t/1", 0.05)] * 14, "c": [("t/2", 0.05)] * 3})
    wishes = wished(view)
    assert {(wish.source, wish.destination) for wish in wishes} == {(1, 2)}


def test_a_bundle_goes_straight_back_only_if_no_other_does_as_well() -> None:
    view = carrying({"a": [("t/n", 0.1)] * 6, "b": [("t/n", 0.1)] * 2})
    names = view.bundles.names

    def moved(left: Iterable[str]) -> set[str]:
        return {names[wish.bundle] for wish in wished(replace(view, left=dict.fromkeys(left, "b")))}

    usual = moved([])
    assert len(usual) == len(moved(usual)) == 2
    assert not usual & moved(usual)
    assert moved(names) == usual
