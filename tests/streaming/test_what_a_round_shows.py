"""What a round's record becomes in the metrics: bounces, hits, ages, and Pulsar's names."""

from __future__ import annotations

import msgspec
import pytest

from sinks.exposition import Exposition
from streaming.metrics import pulsar
from streaming.metrics.bounces import Bounces
from streaming.metrics.gauges import show_round
from tests.support.clusters_by_rows import cluster, held, said, skewed
from tests.support.fleets import fleet, round_at
from tests.support.recorded_batches import START
from tests.support.recorded_batches import held as recorded
from tests.support.reports import bundle
from trimtab.store.requests import BatchId, transitions
from trimtab.wire.command import Division
from trimtab.wire.intent import IntentKind
from trimtab.wire.ownership import Refused, Transition, TransitionOutcome
from trimtab.wire.planned import PlannedMove, PlannedSplit
from trimtab.wire.rounds import RoundRecord

LOW, HIGH = bundle(0, 2), bundle(1, 2)
UNLOADING = {"cluster": "c", "broker": "trimtab-job", "metric": "bundleUnloading"}
SPLITTING = {"cluster": "c", "broker": "trimtab-job", "metric": "bundlesSplit"}


@pytest.fixture
def shown() -> Exposition:
    return Exposition()


def value(shown: Exposition, name: str, **labels: str) -> float | None:
    return shown.registry.get_sample_value(name, labels)


def moving(
    source: str, to: str, at: int = START, reason: str = "high-pair", observe_only: bool = False
) -> RoundRecord:
    move = PlannedMove(bundle=LOW, source=source, destination=to, reason=reason, epoch=(1, 1))
    return msgspec.structs.replace(recorded("c"), at=at, moves=(move,), observe_only=observe_only)


def test_a_move_back_within_a_day_is_a_bounce(shown: Exposition) -> None:
    bounces, day_ms = Bounces(shown), 86_400_000
    for record in (moving("a:1", "b:1"), moving("b:1", "c:1"), moving("c:1", "a:1", START + 1)):
        bounces.note(record)
    assert value(shown, "trimtab_bounces_total", cluster="c") == 1
    bounces.note(moving("a:1", "b:1", START + 2 * day_ms))
    assert value(shown, "trimtab_bounces_total", cluster="c") == 1


@pytest.mark.parametrize("unasked", [{"reason": "drained"}, {"observe_only": True}])
def test_what_no_strategy_moves_back_is_no_bounce(
    shown: Exposition, unasked: dict[str, str | bool]
) -> None:
    bounces = Bounces(shown)
    bounces.note(moving("a:1", "b:1"))
    bounces.note(moving("b:1", "a:1", **unasked))  # type: ignore[arg-type]  # by its names
    assert not value(shown, "trimtab_bounces_total", cluster="c")


def test_hits_stand_beside_the_number_at_which_the_strategy_acts(shown: Exposition) -> None:
    it = cluster({"avg.high_hits": 2, "avg.low_hits": 8})
    it.receive(skewed([bundle(i, 4) for i in range(4)]), 0)
    record = held(it, 5000)
    show_round(shown, record)
    for counter, needed in (("low", 8), ("high", 2)):
        labels = {"cluster": "c", "counter": counter}
        assert value(shown, "trimtab_hits", **labels) == 1
        assert value(shown, "trimtab_hits_needed", **labels) == needed
    # A strategy that counts none.
    show_round(shown, msgspec.structs.replace(record, hits={}))
    assert value(shown, "trimtab_hits", cluster="c", counter="low") is None


def test_deviation_stands_beside_the_range(shown: Exposition) -> None:
    it = cluster()
    it.receive(skewed([bundle(0, 1)]), 0)
    show_round(shown, held(it, 5000))
    # One broker at 90 %, the other at 10 %.
    assert value(shown, "trimtab_usage_deviation_ratio", cluster="c") == pytest.approx(0.4)


def test_the_age_of_an_unserved_bundle_grows_from_round_to_round(shown: Exposition) -> None:
    it = fleet({bundle(i, 8): "a:1" for i in range(8)})
    record = round_at(it, 2000, said(IntentKind.BROKER_LOST, broker="a:1"))
    assert record.unserved == 8
    show_round(shown, record)
    assert value(shown, "trimtab_unserved_oldest_seconds", cluster="c") == 0
    show_round(shown, msgspec.structs.replace(record, at=record.at + 7000))
    assert value(shown, "trimtab_unserved_oldest_seconds", cluster="c") == 7


def test_refused_wishes_and_bundles_left_out_are_told_by_rule(shown: Exposition) -> None:
    record = msgspec.structs.replace(
        recorded("c"), refused={"budget": 3}, obstacles={"cooling-down": 2}
    )
    show_round(shown, record)
    assert value(shown, "trimtab_refused_wishes_total", cluster="c", rule="budget") == 3
    assert value(shown, "trimtab_excluded_bundles", cluster="c", rule="cooling-down") == 2


def answers(requests: tuple[Transition, ...], *accepted: bool) -> list[TransitionOutcome]:
    return [
        TransitionOutcome(
            id=each.id,
            bundle=each.bundle,
            accepted=done,
            reason=None if done else Refused.STALE_EPOCH,
        )
        for each, done in zip(requests, accepted, strict=True)
    ]


def test_moves_and_splits_have_pulsars_names_and_reasons(shown: Exposition) -> None:
    moves = tuple(
        PlannedMove(bundle=name, source="a:1", destination="b:1", reason=reason, epoch=(1, 1))
        for name, reason in ((LOW, "high-pair"), (HIGH, "drained"), (bundle(0, 4), "underloaded"))
    )
    split = PlannedSplit(bundle=bundle(3, 4), broker="a:1", reason="too-many-topics", epoch=(1, 1))
    division = Division(
        algorithm="range_equally_divide", max_rate=1.0, max_throughput=1.0, difference=1.0
    )
    record = msgspec.structs.replace(recorded("c"), moves=moves, splits=(split,), division=division)
    requests = transitions(record, BatchId("q", 1))
    order = [request.bundle for request in requests]
    accepted = [name != bundle(0, 4) for name in order]
    pulsar.show_round(shown, record)
    pulsar.show_outcomes(shown, "c", requests, answers(requests, *accepted))
    assert value(shown, "pulsar_lb_unload_bundle_total", **UNLOADING) == 2
    assert value(shown, "pulsar_lb_unload_broker_total", **UNLOADING) == 1
    for result, reason in (("Success", "Overloaded"), ("Success", "Admin"), ("Failure", "Unknown")):
        told = {**UNLOADING, "result": result, "reason": reason}
        assert value(shown, "pulsar_lb_unload_broker_breakdown_total", **told) == 1
    assert value(shown, "pulsar_lb_bundles_split_total", **SPLITTING) == 1
    told = {**SPLITTING, "result": "Success", "reason": "Topics"}
    assert value(shown, "pulsar_lb_bundles_split_breakdown_total", **told) == 1


def test_a_round_that_moves_nothing_is_skipped_in_pulsars_words(shown: Exposition) -> None:
    summary = {"usage_mean": 0.4, "usage_deviation": 0.1}
    record = msgspec.structs.replace(
        recorded("c"), skipped="balanced", smoothed_usage={"a:1": 0.3}, summary=summary
    )
    pulsar.show_round(shown, record)
    told = {**UNLOADING, "result": "Skip", "reason": "HitCount"}
    assert value(shown, "pulsar_lb_unload_broker_breakdown_total", **told) == 1
    of_broker = {"cluster": "c", "broker": "a:1", "metric": "loadBalancing", "feature": "max_ema"}
    assert value(shown, "pulsar_lb_resource_usage", **of_broker) == 0.3
    for stat, figure in (("avg", 0.4), ("std", 0.1)):
        of_fleet = {**UNLOADING, "feature": "max_ema", "stat": stat}
        assert value(shown, "pulsar_lb_resource_usage_stats", **of_fleet) == figure
