"""The catalogue and what the driver serves are the same thing."""

from __future__ import annotations

from dataclasses import replace
from urllib.request import urlopen

import msgspec
import pytest
from prometheus_client.parser import text_string_to_metric_families

from sinks.exposition import Exposition, PortTaken
from streaming.metrics.gauges import show_dead_letter, show_intake, show_outcomes, show_round
from streaming.metrics.pulsar import show_round as show_for_pulsar
from tests.support.clusters_by_rows import cluster, held, said, skewed, snapshot_row
from tests.support.fleets import fleet, round_at
from tests.support.recorded_batches import held as recorded
from tests.support.reports import bundle, snapshot
from tests.support.settling import Story
from trimtab import metrics
from trimtab.arrays import CPU
from trimtab.metrics import job, pulsar
from trimtab.metrics.metric import MOST_BROKERS, MOST_SERIES, MetricKind
from trimtab.store.requests import BatchId, transitions
from trimtab.wire import keys
from trimtab.wire.columns import pack
from trimtab.wire.intent import IntentKind
from trimtab.wire.ownership import Refused, TransitionOutcome
from trimtab.wire.rows import DeadLetter, Intake, Row, Tag


def value(shown: Exposition, name: str, **labels: str) -> float | None:
    return shown.registry.get_sample_value(name, labels)


def test_every_metric_of_the_catalogue_is_served_with_its_help() -> None:
    server = Exposition().serve("127.0.0.1", 0)
    try:
        with urlopen(f"http://127.0.0.1:{server.server_port}/metrics", timeout=5) as answer:
            text = answer.read().decode()
    finally:
        server.shutdown()
        server.server_close()
    served = {family.name: family.documentation for family in text_string_to_metric_families(text)}
    for metric in (*job.METRICS, *pulsar.OF_JOB):
        assert served[metric.name] == metric.help


def test_a_port_that_is_taken_is_named() -> None:
    server = Exposition().serve("127.0.0.1", 0)
    try:
        with pytest.raises(PortTaken, match=f"127.0.0.1:{server.server_port}.*metrics_port"):
            Exposition().serve("127.0.0.1", server.server_port)
    finally:
        server.shutdown()
        server.server_close()


def test_names_are_ours_and_unique() -> None:
    names = [metric.name for metric in metrics.CATALOGUE]
    assert len(set(names)) == len(names)
    assert all(name.startswith(("trimtab_", "pulsar_lb_")) for name in names)


def test_a_name_says_what_is_measured_in_which_unit_or_what_is_counted() -> None:
    """Base units of Prometheus; one point of usage is 0.01."""
    states = {"trimtab_doubt", "trimtab_breaker_open", "trimtab_leader", "trimtab_generation"}
    states |= {"trimtab_agent_seeded", "trimtab_redis_durable", "trimtab_hits_needed"}
    for metric in (each for each in metrics.CATALOGUE if each not in pulsar.NAMED):
        if metric.kind is MetricKind.HISTOGRAM:
            assert metric.name.endswith(("_seconds", "_ratio")), metric.name
        elif metric.name not in states:
            # A plural: trimtab_state_bytes, trimtab_leases.
            assert metric.name.endswith(("s", "_ratio")), metric.name


def test_help_texts_are_sentences() -> None:
    for metric in metrics.CATALOGUE:
        assert metric.help[:1].isupper() or metric.help[:1].isdigit(), metric.name
        assert metric.help.endswith("."), metric.name


def test_a_metric_of_another_kind_is_refused() -> None:
    with pytest.raises(TypeError, match="trimtab_brokers is a gauge"):
        Exposition().count(job.BROKERS, "c")


def test_a_round_shows_usage_decisions_and_range() -> None:
    shown, it = Exposition(), cluster()
    it.receive(skewed([bundle(0, 2), bundle(1, 2)]), 0)
    show_round(shown, held(it, 5000))
    assert value(shown, "trimtab_broker_usage_ratio", cluster="c", broker="a:1") == pytest.approx(
        0.9
    )
    assert value(shown, "trimtab_usage_range_ratio", cluster="c") == pytest.approx(0.8)
    assert value(shown, "trimtab_planned_changes_total", cluster="c", reason="high-pair") == 1
    assert value(shown, "trimtab_rounds_total", cluster="c", outcome="planned") == 1


def test_the_average_of_the_first_operator_is_shown_beside_the_last_report() -> None:
    shown, it = Exposition(), cluster()
    it.receive(skewed([bundle(0, 2), bundle(1, 2)]), 0)
    last = snapshot("a:1", {bundle(0, 2): 100.0}, cpu=90.0)
    smoothed = last.smoothed.copy()
    smoothed[CPU] = 40.0
    row = Row("c", Tag.SNAPSHOT, "a:1", pack(replace(last, smoothed=smoothed)), 1, accepted=1)
    it.receive([row], 1)
    show_round(shown, held(it, 5000))
    named = {"cluster": "c", "broker": "a:1"}
    assert value(shown, "trimtab_broker_usage_ratio", **named) == pytest.approx(0.9)
    assert value(shown, "trimtab_broker_smoothed_usage_ratio", **named) == pytest.approx(0.4)


def test_a_comparison_shows_both_sides_and_its_end() -> None:
    tried = {"shadow.shedding": "avg", "shadow.placement": "avg"}
    resting = {"round.shedding": "threshold", "round.placement": "round-robin"}
    shown, it = Exposition(), cluster(resting | tried | {"threshold.threshold": 1.0})
    it.receive(skewed([bundle(i, 2) for i in range(2)]), 0)
    show_round(shown, held(it, 5000))
    active = {"cluster": "c", "role": "active", "strategy": "threshold"}
    shadow = {"cluster": "c", "role": "shadow", "strategy": "avg"}
    for side, moves in ((active, 0), (shadow, 1)):
        assert value(shown, "trimtab_shadow_range_ratio", **side) == pytest.approx(0.8)
        assert value(shown, "trimtab_shadow_moves_total", **side) == moves
        assert value(shown, "trimtab_shadow_bounces_total", **side) == 0
    show_round(shown, held(it, 65_000))
    assert value(shown, "trimtab_shadow_range_ratio", **shadow) == pytest.approx(0.0, abs=0.01)
    it.receive([said(IntentKind.SETTINGS, settings={"shadow.shedding": "none"})], 0)
    show_round(shown, held(it, 125_000))
    assert value(shown, "trimtab_shadow_range_ratio", **shadow) is None
    assert value(shown, "trimtab_shadow_moves_total", **shadow) == 1


def test_a_round_shows_what_came_of_moves_and_the_breaker() -> None:
    """Half of 90 % goes to b, which then uses 190 instead of 55; a uses 45, as was predicted."""
    shown, it = Exposition(), Story()
    it.reports(1, a=90.0, b=10.0)
    first = it.round(5)
    show_round(shown, first)
    assert value(shown, "trimtab_breaker_open", cluster="c") == 0
    # Prometheus must see the series at 0, or its board misses the first errors.
    assert value(shown, "trimtab_prediction_error_ratio_count", cluster="c") == 0
    it.land([move.bundle for move in first.moves])
    it.reports(50, a=45.0, b=190.0)
    it.round(60)
    it.reports(130, a=45.0, b=190.0)
    show_round(shown, it.round(180))
    assert value(shown, "trimtab_prediction_error_ratio_count", cluster="c") == 8
    assert value(shown, "trimtab_prediction_error_ratio_sum", cluster="c") == pytest.approx(
        4 * 1.35
    )
    assert value(shown, "trimtab_prediction_bias_ratio", cluster="c") == pytest.approx(0.675)
    assert value(shown, "trimtab_finished_moves_total", cluster="c", outcome="landed") == 4
    assert value(shown, "trimtab_breaker_trips_total", cluster="c", cause="range") == 1
    assert value(shown, "trimtab_breaker_open", cluster="c") == 1


def test_a_round_that_compares_nothing_leaves_the_last_range_to_be_seen() -> None:
    tried = {"shadow.shedding": "threshold"}
    shown, it = Exposition(), cluster(tried)
    it.receive(skewed([bundle(0, 1)]), 0)
    show_round(shown, held(it, 5000))
    it.receive([said(IntentKind.PAUSE)], 0)
    show_round(shown, held(it, 65_000))
    active = {"cluster": "c", "role": "active", "strategy": "avg"}
    assert value(shown, "trimtab_shadow_range_ratio", **active) == pytest.approx(0.8)


def test_ten_thousand_brokers_take_less_than_five_megabytes() -> None:
    brokers = [f"pulsar-broker-{i:05d}.pulsar-broker.prod-eu-1.svc:8080" for i in range(10_000)]
    usage = {broker: i / 10_007 for i, broker in enumerate(brokers)}
    shown = Exposition()
    record = msgspec.structs.replace(recorded("c"), usage=usage, smoothed_usage=usage)
    show_round(shown, record)
    show_for_pulsar(shown, record)
    text = shown.text()
    assert len(text) < 5_000_000
    assert text.count(b"pulsar-broker-09999") == 3


def test_text_and_registry_show_the_same_brokers() -> None:
    shown, odd = Exposition(), 'a"\\\n:1'
    shown.set_brokers(job.USAGE, "c", {odd: 0.5, "b:1": 1e-7})
    shown.set_brokers(job.USAGE, "d", {"b:1": 0.25})
    shown.set_brokers(pulsar.RESOURCE_USAGE, "c", {odd: 0.5}, "loadBalancing", "max_ema")
    told = text_string_to_metric_families(shown.text().decode())
    collected = shown.registry.collect()
    of_text, of_registry = ({f.name: f.samples for f in families} for families in (told, collected))
    for metric in (job.USAGE, pulsar.RESOURCE_USAGE):
        assert of_text[metric.name] == of_registry[metric.name]
    assert of_text[job.USAGE.name][0].labels == {"cluster": "c", "broker": odd}
    shown.set_brokers(job.USAGE, "c", {})
    assert b'"b:1"} 0.25' in shown.text()
    assert b'cluster="c",broker="b:1"' not in shown.text()


def test_label_values_from_the_network_cannot_fill_the_memory_of_prometheus() -> None:
    """The cluster is part of a Kafka record's key, which any producer may choose."""
    shown = Exposition()
    for number in range(MOST_SERIES + 3):
        shown.count(job.REFUSED_INTENTS, f"made-up-{number}", "invalid-id")
    shown.count(job.REFUSED_INTENTS, "made-up-0", "invalid-id")
    assert shown.text().count(b"\ntrimtab_refused_intents_total{") == MOST_SERIES
    assert (
        value(shown, "trimtab_refused_intents_total", cluster="made-up-0", rule="invalid-id") == 2
    )
    shown.set_brokers(job.USAGE, "c", {f"{n}:1": 0.5 for n in range(MOST_BROKERS)})
    shown.set_brokers(job.USAGE, "d", {"a:1": 0.5})
    shown.set_brokers(job.USAGE, "c", {"a:1": 0.5})
    shown.set_brokers(job.USAGE, "d", {"a:1": 0.5})
    assert value(shown, "trimtab_broker_usage_ratio", cluster="d", broker="a:1") == 0.5
    dropped = {
        metric.exposed: value(shown, "trimtab_dropped_samples_total", metric=metric.exposed)
        for metric in (job.REFUSED_INTENTS, job.USAGE)
    }
    assert dropped == {"trimtab_refused_intents_total": 3, "trimtab_broker_usage_ratio": 1}


def test_a_broker_that_left_has_no_usage() -> None:
    shown, it = Exposition(), cluster()
    it.receive(skewed([bundle(0, 1)]), 0)
    show_round(shown, held(it, 1))
    it.receive([snapshot_row("c:1", {}, at_ms=999_000)], 0)
    show_round(shown, held(it, 2))
    assert value(shown, "trimtab_broker_usage_ratio", cluster="c", broker="a:1") is None
    assert value(shown, "trimtab_broker_usage_ratio", cluster="c", broker="c:1") is not None


def test_a_round_shows_doubt_and_who_is_away() -> None:
    shown, it = Exposition(), fleet({bundle(i, 8): "a:1" for i in range(8)})
    show_round(shown, round_at(it, 2000, said(IntentKind.BROKER_LOST, broker="a:1")))
    away = {
        cause: value(shown, "trimtab_unavailable_brokers", cluster="c", cause=cause)
        for cause in ("gone", "draining", "held-back")
    }
    assert away == {"gone": 1, "draining": 0, "held-back": 0}
    assert value(shown, "trimtab_unserved_bundles", cluster="c") == 8
    show_round(shown, round_at(it, 3000, said(IntentKind.DOUBT, name="n", level="jittery")))
    levels = {
        level: value(shown, "trimtab_doubt", cluster="c", level=level)
        for level in ("stable", "jittery", "unstable")
    }
    assert levels == {"stable": 0, "jittery": 1, "unstable": 0}


def test_repairs_are_counted_by_event_and_outcome() -> None:
    shown, it = Exposition(), fleet({bundle(i, 2): "a:1" for i in range(2)})
    record = round_at(it, 2000, said(IntentKind.BROKER_LOST, broker="a:1"))
    requests = transitions(record, BatchId("q", 1))
    first, second = (
        TransitionOutcome(
            id=r.id, bundle=r.bundle, accepted=not i, reason=Refused.NO_LEASE if i else None
        )
        for i, r in enumerate(requests)
    )
    show_outcomes(shown, "c", requests, [first, second])
    for outcome in ("accepted", "no-lease"):
        labels = {"cluster": "c", "event": "assign", "outcome": outcome}
        assert value(shown, "trimtab_repairs_total", **labels) == 1
    assert value(shown, "trimtab_moves_total", cluster="c", outcome="accepted") is None


def test_merges_are_counted_by_what_became_of_them() -> None:
    shown, it = Exposition(), cluster({"split.max_bundles": 4, "round.grace_period": 0.0})
    it.receive(skewed([bundle(i, 4) for i in range(4)]), 0)
    record = held(it, 5000)
    show_round(shown, record)
    assert value(shown, "trimtab_planned_changes_total", cluster="c", reason="cold-neighbours") == 1
    asked = transitions(record, BatchId("q", 1))
    refused = [
        TransitionOutcome(id=r.id, bundle=r.bundle, accepted=False, reason=Refused.NOT_OWNER)
        for r in asked
    ]
    show_outcomes(shown, "c", asked, refused)
    assert value(shown, "trimtab_merges_total", cluster="c", outcome="not-owner") == 1


def test_a_report_that_is_not_believed_is_counted_by_cluster_and_field() -> None:
    shown = Exposition()
    letter = DeadLetter(
        reason="implausible",
        detail="",
        topic=keys.LOAD_REPORTS,
        partition=0,
        offset=1,
        key="c/b:1",
        size=2,
        head="",
        field="cpu",
    )
    show_dead_letter(shown, letter)
    show_dead_letter(shown, msgspec.structs.replace(letter, reason="bad-json", field=""))
    labels = {"topic": keys.LOAD_REPORTS, "reason": "implausible"}
    assert value(shown, "trimtab_dead_letters_total", **labels) == 1
    assert value(shown, "trimtab_implausible_reports_total", cluster="c", field="cpu") == 1
    assert value(shown, "trimtab_implausible_reports_total", cluster="c", field="") is None


def test_a_refused_intent_is_counted_by_cluster_and_rule() -> None:
    it = cluster()
    row = said(IntentKind.SETTINGS, settings={"round.max_moves": -1})
    _, out = it.receive([row], 0)
    shown = Exposition()
    for letter in (each for each in out if each.tag == Tag.DEAD_LETTER):
        show_dead_letter(shown, msgspec.json.decode(letter.payload, type=DeadLetter))
    labels = {"topic": keys.CONTROL, "reason": "refused-intent"}
    assert value(shown, "trimtab_dead_letters_total", **labels) == 1
    assert value(shown, "trimtab_refused_intents_total", cluster="c", rule="invalid-setting") == 1


def test_intake_counts_verdicts_and_ages() -> None:
    shown = Exposition()
    intake = Intake(cluster="c", accepted=3, duplicate=2, old=1, newest_ms=4_000)
    show_intake(shown, intake, batch_ms=5_500)
    for verdict, count in (("accepted", 3), ("duplicate", 2), ("old", 1)):
        assert value(shown, "trimtab_load_reports_total", cluster="c", verdict=verdict) == count
    assert value(shown, "trimtab_newest_report_age_seconds", cluster="c") == 1.5
