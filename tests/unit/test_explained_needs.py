"""Where bundles take several resources, reasons have the figures that the plan was made with."""

from __future__ import annotations

from dataclasses import replace

import pytest

from simulation.scenarios.reading import load
from simulation.scenarios.running import EPOCH_MS, Run, strategy
from tests.support.scenes import scene_of
from trimtab.explaining.scene import Scene
from trimtab.explaining.witness import Witness
from trimtab.load_model.observation import observe_fleet
from trimtab.settings import Settings
from trimtab.state.memory import Memory
from trimtab.state.round_state import Histories, RoundState


@pytest.fixture(scope="module")
def scene() -> Scene:
    """A round that moves bundles between twelve brokers, which need processors or the network."""
    small = {"brokers": 12, "bundles": 240, "namespaces": 12, "sigma": 0.5, "warm_up": 0}
    run = Run(load("two-resources", **small), strategy("none"))
    history = run.state.histories.trimtab
    for cycle in range(4):
        _, history = observe_fleet(
            run._reports.view(EPOCH_MS + 60_000 * cycle), history, Settings()
        )
    state = RoundState(histories=Histories(trimtab=replace(history, filling_ms=0)))
    view = run._reports.view(EPOCH_MS + 240_000)
    return scene_of(view, {"round.shedding": "trimtab"}, Memory(round=state))


def test_a_reason_forecasts_what_the_review_will_compare_with(scene: Scene) -> None:
    (noted,) = scene.after.ledger.plans
    assert len(noted.sides) > 2
    witness = Witness(scene)
    for broker, side in noted.sides.items():
        assert witness.usage(broker) == pytest.approx((side.before, side.predicted), abs=1e-4)


def test_what_a_bundle_adds_is_the_busiest_resource_s_rise(scene: Scene) -> None:
    fleet, _ = observe_fleet(scene.seen, scene.before.histories.trimtab, scene.settings)
    prediction, takes = Witness(scene).prediction, fleet.takes
    assert prediction is not None
    assert takes is not None
    for bundle in (0, 100, 200):
        by_hand = []
        for broker in range(len(scene.view.brokers.names)):
            after = (takes.used[:, broker] + takes.need[:, bundle]) * takes.scale[:, broker]
            by_hand.append(max(after.tolist()) - takes.usage[broker])
        assert prediction.added(bundle).tolist() == pytest.approx(by_hand)
