"""Settings: names, units, bounds, and every problem at once."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest

from trimtab.merging import MERGERS
from trimtab.placement import PLACERS
from trimtab.settings import (
    MERGING,
    PLACEMENT,
    SHEDDING,
    SPLIT_ALGORITHMS,
    SPLIT_TRIGGERS,
    RoundSettings,
    Settings,
    catalogue,
)
from trimtab.settings.setting import InvalidSettings
from trimtab.settings.words import AIMS
from trimtab.shedding import SHEDDERS
from trimtab.splitting import DIVIDERS
from trimtab.splitting.triggers import TRIGGERS


def problems(**values: object) -> list[str]:
    with pytest.raises(InvalidSettings) as raised:
        Settings.parse({name.replace("__", "."): value for name, value in values.items()})
    return raised.value.problems


def test_pulsar_names_bring_their_units() -> None:
    settings = Settings.parse(
        {
            "loadBalancerSheddingIntervalMinutes": 2,
            "loadBalancerSheddingGracePeriodMinutes": 5,
            "loadBalancerInFlightServiceUnitStateWaitingTimeInMillis": 45_000,
            "loadBalancerBrokerOverloadedThresholdPercentage": 70,
            "loadBalancerBundleUnloadMinThroughputThreshold": 0.01,
            "loadBalancerAvgShedderLowThreshold": 20,
            "loadBalancerLoadSheddingStrategy": (
                "org.apache.pulsar.broker.loadbalance.impl.AvgShedder"
            ),
            "loadBalancerLoadPlacementStrategy": (
                "org.apache.pulsar.broker.loadbalance.impl.AvgShedder"
            ),
        }
    )
    assert settings.round == replace(
        RoundSettings(),
        interval=120.0,
        grace_period=300.0,
        move_deadline=45.0,
        overloaded_threshold=0.7,
        shedding="avg",
        placement="avg",
    )
    assert settings.threshold.min_throughput == 0.01 * 1048576
    assert settings.avg.low_threshold == 20.0


def test_every_problem_is_said_at_once() -> None:
    assert problems(
        avg__low_treshold=10,
        avg__low_hits=2.5,
        round__enabled="yes",
        round__interval=math.nan,
        round__grace_period=-1,
        round__shedding="fastest",
        weights__cpu=True,
        loadBalancerAvgShedderHighThreshhold=40,
        loadBalancerSheddingIntervalMinutes="1",
    ) == [
        "avg.low_treshold: no such setting (did you mean avg.low_threshold?)",
        "avg.low_hits: must be a whole number, not 2.5",
        "round.enabled: must be true or false, not 'yes'",
        "round.interval: must be finite, not nan",
        "round.grace_period: must be from 0 to 86400 (s), not -1",
        f"round.shedding: must be one of {', '.join(SHEDDING)}",
        "weights.cpu: must be a number, not True",
        "loadBalancerAvgShedderHighThreshhold: no such setting"
        " (did you mean loadBalancerAvgShedderHighThreshold?)",
        "loadBalancerSheddingIntervalMinutes: must be a number, not '1'",
    ]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        pytest.param(
            "threshold.difference",
            "threshold has threshold, min_throughput, lower_boundary; split has difference",
            id="like none of its group",
        ),
        pytest.param("threshold.treshold", "did you mean threshold.threshold?", id="misspelt"),
        pytest.param("planner.aimm", "did you mean planner.aim?", id="a number in words"),
        pytest.param("trimtab.target", "did you mean planner.target?", id="in another group"),
        pytest.param("roundd.interval", "did you mean round.interval?", id="a group misspelt"),
        pytest.param(
            "shedding", "did you mean round.shedding or shadow.shedding?", id="without a group"
        ),
        pytest.param(
            "loadBalancerFoo",
            "`trimtab config import` tells what Pulsar's keys mean",
            id="like a key of Pulsar, and none that counts here",
        ),
        ("zebra", ""),
    ],
)
def test_a_name_that_is_no_setting_is_answered_by_those_of_its_group(name: str, said: str) -> None:
    [problem] = problems(**{name.replace(".", "__"): 1})
    assert problem == f"{name}: no such setting" + (f" ({said})" if said else "")


def test_settings_that_contradict_one_another() -> None:
    assert problems(avg__low_threshold=50, round__shedding="avg", round__forget=10) == [
        "avg.low_threshold: must not be above avg.high_threshold",
        "round.forget: must not be below round.silence",
        "round.placement: avg placement and avg shedding go together or not at all",
    ]
    assert problems(round__placement="avg") == [
        "round.placement: avg placement and avg shedding go together or not at all"
    ]


def test_one_setting_under_two_names() -> None:
    assert problems(avg__low_threshold=10, loadBalancerAvgShedderLowThreshold=12) == [
        "loadBalancerAvgShedderLowThreshold: avg.low_threshold is given twice, as 10.0 and 12"
    ]
    agreed = Settings.parse({"avg.low_threshold": 10, "loadBalancerAvgShedderLowThreshold": 10})
    assert agreed.avg.low_threshold == 10.0


@pytest.mark.parametrize(("word", "target"), AIMS.items())
def test_the_planners_aim_in_words_is_a_target(word: str, target: float) -> None:
    assert Settings.parse({"planner.aim": word}).planner.target == target
    assert Settings.parse({"planner.aim": word, "planner.target": target}).planner.target == target


def test_the_default_is_balanced() -> None:
    assert Settings.parse({"planner.aim": "balanced"}) == Settings()


def test_a_word_and_another_number_are_refused_together() -> None:
    assert problems(planner__target=0.07, planner__aim="calm") == [
        "planner.aim: planner.target is given twice, as 0.07 and 0.15 (calm)"
    ]


@pytest.mark.parametrize(
    ("given", "says"),
    [("clam", "must be one of calm, balanced, tight"), (0.15, "must be a word, not 0.15")],
)
def test_an_aim_is_one_of_its_words(given: object, says: str) -> None:
    assert problems(planner__aim=given) == [f"planner.aim: {says}"]


def test_an_old_spelling_of_a_key_is_read() -> None:
    given = {"loadBalancerBandwithInResourceWeight": 0.25}
    assert Settings.parse(given).weights.bandwidth_in == 0.25


@pytest.mark.parametrize(
    "correct", ["loadBalancerBandwidthInResourceWeight", "weights.bandwidth_in"]
)
def test_an_old_spelling_beside_the_correct_one_is_refused_unless_they_agree(correct: str) -> None:
    old = "loadBalancerBandwithInResourceWeight"
    for weight in (0.6, 1.0):
        assert problems(**{correct.replace(".", "__"): weight, old: 0.25}) == [
            f"{old}: weights.bandwidth_in is given twice, as {weight} and 0.25"
        ]
    assert Settings.parse({correct: 0.6, old: 0.6}).weights.bandwidth_in == 0.6


def test_a_refused_change_leaves_the_settings_alone() -> None:
    settings = Settings.parse({"avg.low_hits": 3})
    with pytest.raises(InvalidSettings):
        settings.changed({"avg.low_hits": 4, "avg.high_hits": -1})
    assert settings.changed({"avg.high_hits": 1}).avg.low_hits == 3


def test_dumped_settings_survive_json() -> None:
    settings = Settings.parse({"avg.low_threshold": 12.5, "round.observe_only": True})
    dumped = settings.dumped()
    assert list(dumped) == sorted(dumped)
    assert Settings.parse(json.loads(json.dumps(dumped))) == settings


def test_every_default_is_within_its_own_bounds() -> None:
    assert Settings.parse(Settings().dumped()) == Settings()


def test_every_setting_argues_for_itself() -> None:
    for path, default, known in catalogue():
        assert known.why, path
        assert bool(known.unit) == (type(default) in (int, float)), path


def test_strategies_and_settings_name_the_same() -> None:
    assert set(SHEDDING) <= set(SHEDDERS)
    words = "trimtab/settings/words.py has the words of settings"
    assert set(PLACEMENT) == set(PLACERS), f"{words}: PLACEMENT"
    assert set(SPLIT_TRIGGERS) == set(TRIGGERS), f"{words}: SPLIT_TRIGGERS"
    assert set(SPLIT_ALGORITHMS) == set(DIVIDERS), f"{words}: SPLIT_ALGORITHMS"
    assert set(MERGING) == set(MERGERS), f"{words}: MERGING"


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        pytest.param(
            {"split.algorithm": "specified_positions_divide"},
            "split.algorithm: specified_positions_divide needs positions",
            id="an operator's alone",
        ),
        pytest.param(
            {"split.supported": "topic_count_equally_divide"},
            "split.algorithm: range_equally_divide is not in split.supported",
            id="the default is not allowed",
        ),
        pytest.param(
            {"split.supported": "range_equally_divide,in_half"},
            "split.supported: 'in_half' is none of",
            id="no such algorithm",
        ),
    ],
)
def test_a_default_split_algorithm_must_be_supported(
    values: dict[str, object], problem: str
) -> None:
    """Items 000-29 and 002-12 of docs/pulsar-coverage.md."""
    with pytest.raises(InvalidSettings, match=problem):
        Settings.parse(values)


def test_a_weight_may_be_above_one() -> None:
    """Item 002-39: a document gives 0 to 1; Pulsar checks nothing, and trimtab takes 0 to 100."""
    assert Settings.parse({"loadBalancerCPUResourceWeight": 100}).weights.cpu == 100.0
    for weight in (-1, 101):
        with pytest.raises(InvalidSettings, match="from 0 to 100"):
            Settings.parse({"loadBalancerCPUResourceWeight": weight})
