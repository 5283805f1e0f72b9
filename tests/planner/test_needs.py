"""What bundles take of each resource, as it is learned from reports."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from simulation.scenarios.reading import load
from simulation.scenarios.running import EPOCH_MS, Run, strategy
from trimtab.arrays import CPU
from trimtab.load import COUNTED
from trimtab.load_model.estimating.leap_record import LeapRecord
from trimtab.load_model.fleet import Fleet
from trimtab.load_model.history import PlannerHistory
from trimtab.load_model.in_transit import send_off
from trimtab.load_model.model import build_model
from trimtab.load_model.observation import observe_fleet
from trimtab.load_model.resources.base_use import free_base
from trimtab.load_model.resources.needs import Needs
from trimtab.load_model.resources.slopes import Fit, _untold, fit_slopes
from trimtab.load_model.resources.takes import Takes, _excess, _sway, compete
from trimtab.model import Epoch
from trimtab.names import identities
from trimtab.plan import Move
from trimtab.planner import shed
from trimtab.reasons import Reason
from trimtab.review.note_prediction import note_prediction
from trimtab.wire.columns import pack, unpack


def world(**changes: object) -> Run:
    """Twelve brokers with 240 bundles that need processors or the network."""
    chosen = {key.replace("__", "."): value for key, value in changes.items()}
    small = {"brokers": 12, "bundles": 240, "namespaces": 12, "sigma": 0.5, "warm_up": 0}
    return Run(load("two-resources", **(small | chosen)), strategy("none"))


def learned(run: Run, cycles: int) -> tuple[Fleet, Takes]:
    """The fleet after so many cycles in which nothing moves, of brokers that were watched for so
    long before that nothing they take by themselves is in doubt."""
    history, settings = run.state.histories.trimtab, run.settings
    for cycle in range(cycles):
        view = run._reports.view(EPOCH_MS + 60_000 * cycle)
        history = replace(history, since_ms=dict.fromkeys(view.brokers.names, 0))
        fleet, history = observe_fleet(view, history, settings)
    run.state = replace(run.state, histories=replace(run.state.histories, trimtab=history))
    assert fleet.takes is not None
    return fleet, fleet.takes


def true_needs(run: Run) -> np.ndarray:
    world = run.world
    return world.needs.used[COUNTED][:, world.kind] * world.load


def test_bytes_and_messages_tell_what_each_bundle_takes() -> None:
    run = world()
    fleet, takes = learned(run, 5)
    true = true_needs(run)
    for resource in (0, 2, 3):
        assert np.corrcoef(takes.need[resource], true[resource])[0, 1] > 0.99
    np.testing.assert_allclose(fleet.usage, run.world.levels, atol=0.01)


def test_what_nothing_tells_of_is_in_doubt_and_the_rest_is_not() -> None:
    run = world(need__told=False)
    fleet, takes = learned(run, 5)
    assert np.median(takes.doubt[0] / np.maximum(takes.need[0], 1e-9)) > 0.5
    assert np.median(takes.doubt[2] / np.maximum(takes.need[2], 1e-9)) < 0.1
    np.testing.assert_allclose(fleet.usage, run.world.levels, atol=0.02)


def test_what_a_broker_takes_beyond_the_usual_may_be_any_one_bundles_and_counts_once() -> None:
    """Of the three on the first broker the last takes 3 more than usual: at worst each of the other
    two does, and the last takes no more than it is believed to."""
    own, hosts = np.array([[0.0, 0.0, 4.0, 0.0, 1.0]]), np.array([0, 0, 0, 1, 1])
    usual, excess = 1.0, [3.0 - 1.0, 3.0 - 1.0, 0.0, 0.0, 0.0]
    assert own.mean() == usual
    assert _excess(own, hosts, 2).tolist() == [excess]


@pytest.mark.parametrize("told", [True, False])
def test_a_plan_notes_how_far_its_forecast_may_be_off_as_needs_are_not_known(
    told: bool,
) -> None:
    run = world(need__told=told)
    learned(run, 5)
    view = run._reports.view(EPOCH_MS + 5 * 60_000)
    model = build_model(view, run.state.histories.trimtab, run.settings)
    names, row = view.brokers.names, int(np.argmax(model.sizes(view.bundles.names)))
    source = names[view.bundles.owner[row]]
    to = names[0] if source != names[0] else names[1]
    move = Move(view.bundles.names[row], source, to, Reason.OUT_OF_RANGE, Epoch(1, 1))
    row_of = {name: at for at, name in enumerate(names)}
    noted = note_prediction([move], row_of, model, view.now_ms, run.state)
    assert noted is not None
    assert {*noted.sides} == {source, to}
    for side in noted.sides.values():
        part = side.doubt / noted.moves[move.bundle].added
        assert part < 0.1 if told else part > 0.3


def test_where_moves_tell_what_bundles_take_none_goes_straight_back() -> None:
    """Also where no other plan does as well, since no other bundles may move."""
    run = world()
    learned(run, 5)
    view, history = run._reports.view(EPOCH_MS + 5 * 60_000), run.state.histories.trimtab
    names, brokers = view.bundles.names, view.brokers.names
    wishes, _ = shed(view, history, run.settings)
    assert wishes
    only = np.isin(np.arange(len(names)), [wish.bundle for wish in wishes])
    view = replace(view, bundles=replace(view.bundles, movable=only))
    assert shed(view, history, run.settings)[0]
    left: dict[str, str] = {}
    for _ in range(5):
        wishes, _ = shed(replace(view, left=left), history, run.settings)
        went = {names[wish.bundle]: brokers[wish.destination or 0] for wish in wishes}
        assert not went.items() & left.items()
        left |= went


def test_brokers_of_one_mixture_do_not_tell_whether_messages_or_bytes_cost() -> None:
    """Where each broker carries the same, what a bundle of other traffic takes is in doubt; the
    doubt is of all such bundles at once, and goes as mixtures differ."""
    alike, apart = (_untold(np.diag(each), np.ones(4)) for each in ([0.0] * 4, [0.04] * 4))
    assert alike == 1.0
    assert apart == pytest.approx(0.05 / np.sqrt(0.04 + 0.05**2))
    carried = np.array([[3.0, 1.0], [0.0, 0.0], [1.0, 3.0], [0.0, 0.0]])
    only_messages, only_bytes = _sway(carried, np.array([[0.5, 0.5]]))
    assert only_messages.tolist() == [[0.25, -0.25]]
    assert only_bytes.tolist() == [[-0.25, 0.25]]


def fitted(used: list[float], traffic: list[float], base: float = 1.0) -> Fit:
    """The fit of brokers that are ``used`` so much by as many messages as bytes."""
    columns = np.zeros((9, len(used)))
    columns[0], columns[1], columns[3], columns[5] = 1.0, traffic, 1024 * np.array(traffic), used
    return fit_slopes(columns @ columns.T, 0, base)


def test_a_fleet_that_is_kept_even_hides_what_traffic_takes() -> None:
    """The busiest resource is the same whatever the traffic, and its fit is flat: if that were
    believed, the brokers that take in a lost one's bundles would seem to have room for many."""
    traffic = [3e4, 4e4, 5e4, 6e4, 7e4]
    even = fitted([0.42, 0.41, 0.43, 0.42, 0.42], traffic)
    assert even.rest[0] == pytest.approx(0.2 * 0.42, rel=0.05)
    assert even.untold > 0.6
    shown = fitted([0.42, 0.41, 0.43, 0.42, 0.42], traffic, base=0.03)
    assert shown.rest[0] == pytest.approx(0.03, rel=0.1)
    # An uneven one shows it, and what never changes is in use without traffic.
    uneven = fitted([0.36, 0.43, 0.5, 0.57, 0.64], traffic)
    assert uneven.rest[0] == pytest.approx(0.15, rel=0.1)
    assert fitted([0.42] * 5, traffic).rest[0] > 0.9 * 0.42


def test_an_idle_broker_shows_that_the_rest_is_the_bundles() -> None:
    base, idle = np.array([[20.0, 22.0, 19.0, 3.0]]), np.full((1, 4), 4.0)
    known = np.array([True, True, True, False])
    assert free_base(base, idle, known).tolist() == [[16.0, 16.0, 16.0, 3.0]]
    assert not free_base(base, np.full((1, 4), 20.0), known).any()


def test_a_move_tells_what_the_bundle_takes() -> None:
    run = world(need__told=False)
    _, before = learned(run, 5)
    true = true_needs(run)
    moved = int(np.argmax(true[0]))
    to = int((run.world.owner[moved] + 1) % 12)
    run.world.give({moved: to}, EPOCH_MS + 5 * 60_000)
    _, after = learned_again(run, 6, 9)
    error = abs(after.need[0, moved] - true[0, moved])
    assert error < 0.5 * abs(before.need[0, moved] - true[0, moved])
    unsure = [each.doubt[0, moved] / each.need[0, moved] for each in (before, after)]
    assert unsure[1] < 0.7 * unsure[0]


def learned_again(run: Run, first: int, last: int) -> tuple[Fleet, Takes]:
    history = run.state.histories.trimtab
    for cycle in range(first, last):
        view = run._reports.view(EPOCH_MS + 60_000 * cycle)
        fleet, history = observe_fleet(view, history, run.settings)
    assert fleet.takes is not None
    return fleet, fleet.takes


def unlearned(run: Run, leapt: np.ndarray) -> PlannerHistory:
    """The history without needs, and with leaps of these rows of the estimates."""
    history = run.state.histories.trimtab
    known = history.estimates
    leaps = LeapRecord(
        keys=known.keys[leapt],
        before=known.level[leapt] / 3,
        after=known.level[leapt],
        since_ms=np.full(len(leapt), EPOCH_MS),
        worth=np.ones(len(leapt)),
    )
    return replace(history, leaps=leaps, needs=Needs())


def test_brokers_whose_bundles_burst_from_the_first_count_with_their_average_use() -> None:
    """What a usual broker takes is far from what these do, which carry bundles of all kinds."""
    run = world(need__told=False)
    learned(run, 1)
    level, view = run.state.histories.trimtab.estimates.level, run._reports.view(EPOCH_MS)
    hosts = view.bundles.owner[np.argsort(identities(view.bundles.names))]
    least = [
        rows[np.argmin(level[rows])] for rows in (np.flatnonzero(hosts == b) for b in range(12))
    ]
    history = unlearned(run, np.sort(least))
    # Leaps have come back after some minutes before.
    returned = (0.0, 0.0, 0.0, 0.0, 5.0, 0.0, 0.0)
    passing = replace(history.leaps, returned=returned, at_ms=EPOCH_MS)
    history = replace(history, leaps=passing)
    for minute in range(1, 4):
        view = run._reports.view(EPOCH_MS + 60_000 * minute)
        fleet, history = observe_fleet(view, history, run.settings)
    assert (history.needs.host < 0).all()
    np.testing.assert_allclose(fleet.usage, run.world.levels, atol=0.02)


def test_a_broker_that_gave_all_counts_with_what_was_learned_of_it() -> None:
    """Its average use is still that of what it gave."""
    run = world(need__told=False)
    learned(run, 12)
    given = dict.fromkeys(np.flatnonzero(run.world.owner == 0).tolist(), 1)
    run.world.give(given, EPOCH_MS + 12 * 60_000)
    fleet, _ = learned_again(run, 13, 16)
    assert fleet.usage[0] == pytest.approx(run.world.levels[0], abs=0.1)


def test_a_broker_that_taught_nothing_yet_takes_by_itself_what_others_do() -> None:
    """One of its bundles may burst, so its reports do not count: it is no emptier for that."""
    run = world()
    learned(run, 1)
    level = run.state.histories.trimtab.estimates.level
    history = unlearned(run, np.array([int(np.argmin(level))]))
    more = np.zeros((5, 1))
    more[CPU] = 25.0
    for minute in range(1, 6):
        view = run._reports.view(EPOCH_MS + 60_000 * minute)
        brokers = replace(
            view.brokers,
            resources=view.brokers.resources + more,
            smoothed_resources=view.brokers.smoothed_resources + more,
        )
        view = replace(view, brokers=brokers)
        fleet, history = observe_fleet(view, history, run.settings)
    assert fleet.takes is not None
    assert fleet.passing == 1
    assert (fleet.takes.shares[0] - view.brokers.resources[CPU] / 100).min() > -0.005
    # From that it will learn.
    hosts = view.bundles.owner[np.argsort(identities(view.bundles.names))]
    taught = np.bincount(hosts, history.needs.host >= 0, 12) > 0
    base = history.needs.base[0]
    assert base[~taught].tolist() == [pytest.approx(np.median(base[taught]), rel=0.2)]


def test_what_is_on_its_way_and_not_reported_counts_where_it_was_sent() -> None:
    """A late report does not show it yet: its new broker would seem as empty as before."""
    run = world()
    _, takes = learned(run, 5)
    history, view = run.state.histories.trimtab, run._reports.view(EPOCH_MS + 300_000)
    largest = int(np.argmax(takes.need[0]))
    to = int(np.argmin(run.world.levels))
    others = np.arange(len(view.intended)) != largest
    left = replace(view, bundles=view.bundles.part(others), intended=view.intended[others])
    unsent, _ = observe_fleet(left, history, run.settings)
    moves = {view.bundles.names[largest]: view.brokers.names[to]}
    history = replace(history, sent=send_off({}, moves, view.now_ms))
    sent, _ = observe_fleet(left, history, run.settings)
    assert np.flatnonzero(sent.usage > unsent.usage).tolist() == [to]


def test_what_a_broker_takes_beside_its_bundles_is_followed_as_slowly_as_an_average() -> None:
    run = world(need__told=False)
    learned(run, 12)
    history, view = run.state.histories.trimtab, run._reports.view(EPOCH_MS + 720_000)
    resources = view.brokers.resources.copy()
    busiest = int(np.argmax(resources[CPU]))
    resources[CPU, busiest] += 4.0
    view = replace(view, brokers=replace(view.brokers, resources=resources))
    _, after = observe_fleet(view, history, run.settings)
    more = after.needs.base[0, busiest] - history.needs.base[0, busiest]
    assert 0 < more < 0.02 * 0.04 * view.brokers.limits[CPU, busiest]


def test_where_one_resource_rules_nothing_is_learned() -> None:
    run = Run(load("skewed"), strategy("none"))
    view = run._reports.view(EPOCH_MS)
    assert not compete(view.brokers, run.settings.weights)
    fleet, history = observe_fleet(view, run.state.histories.trimtab, run.settings)
    assert fleet.takes is None
    assert history.needs == Needs()


def test_it_survives_a_checkpoint() -> None:
    run = world()
    learned(run, 3)
    needs = run.state.histories.trimtab.needs
    assert unpack(pack(needs), Needs) == needs
    assert unpack(pack(Needs()), Needs).own.size == 0


@pytest.mark.parametrize("told", [True, False])
def test_mixed_needs_are_not_made_worse(told: bool) -> None:
    run = world(need__told=told, warm_up=10)
    run.settings = strategy("trimtab", run.settings)
    start, peaks, moves = np.ptp(run.world.levels), [], 0
    for cycle in range(20):
        moves += len(run.step(cycle).moves)
        peaks.append(run.world.levels.max())
    assert moves < 60
    assert max(peaks) <= peaks[0] + 0.03
    assert np.ptp(run.world.levels) <= start + 0.01


def test_a_burst_says_nothing_of_the_bundles_beside_it() -> None:
    """What a burst takes beyond its traffic counts as its own, and is gone with it; dealt out to
    the bundles beside it, it would make them look heavy until they have moved away."""
    run = world(need__told=False)
    before, _ = learned(run, 12)
    history = run.state.histories.trimtab
    # Leaps have come back after some minutes before.
    leaps = LeapRecord(returned=(0.0, 0.0, 0.0, 0.0, 5.0, 0.0, 0.0))
    run.state = replace(
        run.state, histories=replace(run.state.histories, trimtab=replace(history, leaps=leaps))
    )
    bursts = int(np.argmax(true_needs(run)[0]))
    broker = int(run.world.owner[bursts])
    factor = np.ones(240)
    factor[bursts] = 4.0
    run.world.vary(factor)
    assert run.world.levels[broker] > before.usage[broker] + 0.1
    fleet, _ = learned_again(run, 12, 19)
    assert fleet.passing == 1
    np.testing.assert_allclose(fleet.usage, before.usage, atol=0.01)
