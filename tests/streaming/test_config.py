"""The job's settings: where they come from, and that every problem is told at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from streaming.config import InvalidConfig, JobConfig, load_config


def written(folder: Path, text: str) -> Path:
    path = folder / "trimtab.toml"
    path.write_text(text)
    return path


def problems(path: Path) -> list[str]:
    with pytest.raises(InvalidConfig) as caught:
        load_config(path)
    return caught.value.problems


def test_without_a_file_the_defaults_stand() -> None:
    assert load_config(None) == JobConfig()


def test_a_file_may_use_our_names_and_pulsars(tmp_path: Path) -> None:
    config = load_config(
        written(
            tmp_path,
            """
            trigger_seconds = 0.5
            [kafka]
            bootstrap = "kafka:9092"
            [intake]
            half_life = 5.0
            [settings]
            loadBalancerAvgShedderLowThreshold = 20
            [settings.round]
            shedding = "avg"
            placement = "avg"
            """,
        )
    )
    assert (config.trigger_seconds, config.kafka.bootstrap) == (0.5, "kafka:9092")
    assert config.intake_settings().half_life == 5.0
    assert config.round_settings().round.shedding == "avg"
    assert config.round_settings().avg.low_threshold == 20.0


def test_the_environment_goes_over_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path, 'redis_url = "redis://a:1"\n[kafka]\nbootstrap = "a:1"\n')
    monkeypatch.setenv("TRIMTAB_REDIS_URL", "redis://:secret@b:2")
    monkeypatch.setenv("TRIMTAB_KAFKA__BOOTSTRAP", "b:2")
    config = load_config(path)
    assert config.kafka.bootstrap == "b:2"
    assert config.redis_url.get_secret_value() == "redis://:secret@b:2"
    assert "secret" not in repr(config)


def test_how_many_replicas_must_acknowledge_is_left_to_their_number_or_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert load_config(None).redis_replicas is None
    assert load_config(written(tmp_path, "redis_replicas = 0")).redis_replicas == 0
    monkeypatch.setenv("TRIMTAB_REDIS_REPLICAS", "2")
    assert load_config(None).redis_replicas == 2
    monkeypatch.setenv("TRIMTAB_REDIS_REPLICAS", "-1")
    with pytest.raises(InvalidConfig, match="redis_replicas"):
        load_config(None)


def test_every_problem_is_told_at_once(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        """
        trigger_seconds = -1
        nonsense = 1
        [kafka]
        fetch_wait_ms = "soon"
        [settings.round]
        interval = -5
        shedding = "avgg"
        [settings.avg]
        low_treshold = 15
        [intake]
        halflife = 3
        """,
    )
    said = "\n".join(problems(path))
    for name in (
        "trigger_seconds",
        "nonsense",
        "kafka.fetch_wait_ms",
        "settings.round.interval",
        "settings.round.shedding",
        "intake.halflife",
        "did you mean avg.low_threshold?",
    ):
        assert name in said


@pytest.mark.parametrize("half_life", ["0.0", "-1.0", "nan", "inf"])
def test_an_impossible_half_life_is_refused(tmp_path: Path, half_life: str) -> None:
    assert "half_life" in problems(written(tmp_path, f"[intake]\nhalf_life = {half_life}\n"))[0]


def test_a_file_that_is_not_there_or_not_toml_is_named(tmp_path: Path) -> None:
    assert "missing.toml" in problems(tmp_path / "missing.toml")[0]
    assert "trimtab.toml" in problems(written(tmp_path, "= ="))[0]


def test_a_setting_in_the_environment_leaves_the_others_of_its_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The environment's table once replaced the file's: silence fell back to its default."""
    path = written(tmp_path, "[settings.round]\nsilence = 7.0\ninterval = 9.0\n")
    monkeypatch.setenv("TRIMTAB_SETTINGS__ROUND__INTERVAL", "2")
    settings = load_config(path).round_settings().round
    assert (settings.silence, settings.interval) == (7.0, 2.0)


def test_problems_of_file_and_environment_are_said_together_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wrong variable of the job once hid those of [settings]."""
    path = written(tmp_path, "heartbeat_seconds = 0.0\n[settings.round]\nsilence = -1.0\n")
    monkeypatch.setenv("TRIMTAB_METRICS_PORT", "x")
    monkeypatch.setenv("TRIMTAB_LOG_LEVL", "info")
    monkeypatch.setenv("TRIMTAB_SETTINGS__THRESHOLD__THRESHOLD", "7")
    with pytest.raises(InvalidConfig) as caught:
        load_config(path)
    text = caught.value.told()
    for name in ("TRIMTAB_LOG_LEVL", "heartbeat_seconds", "TRIMTAB_METRICS_PORT", "silence"):
        assert name in text
    assert "settings.threshold.threshold: must be from 0 to 1" in text
    assert text.endswith(
        "Next: unset TRIMTAB_LOG_LEVL TRIMTAB_METRICS_PORT TRIMTAB_SETTINGS__THRESHOLD__THRESHOLD "
        f"and edit {path}"
    )


def test_a_variable_that_is_not_json_is_to_be_unset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRIMTAB_SPARK__JARS", "a.jar")
    with pytest.raises(InvalidConfig) as caught:
        load_config(None)
    assert caught.value.remedy == "unset TRIMTAB_SPARK__JARS"


def test_a_takeover_at_every_missed_heartbeat_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, "heartbeat_seconds = 4.0\ntakeover_seconds = 6.0\n")
    assert problems(path) == ["takeover_seconds: must be at least two heartbeats, 8"]


def test_a_setting_in_the_wrong_place_or_misspelt_is_told_where_it_belongs(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        """
        loadBalancerEnabled = true
        loadBalancerSheddingIntervalMinutes = 1
        metric_port = 1
        obsrve_only = true
        observe_only = true
        max_share = 0.5
        aim = "calm"
        [kafka]
        bootstrp = "a:1"
        [round]
        interval = 5.0
        """,
    )
    assert problems(path) == [
        "kafka.bootstrp: no such setting (did you mean kafka.bootstrap?)",
        "loadBalancerEnabled: no setting; `trimtab config import` tells what Pulsar's keys mean",
        "loadBalancerSheddingIntervalMinutes: belongs under [settings]",
        "metric_port: no such setting (did you mean metrics_port?)",
        "obsrve_only: no such setting (did you mean observe_only under [settings.round]?)",
        "observe_only: belongs under [settings.round]",
        "max_share: belongs under [settings.unload]",
        "aim: belongs under [settings.planner]",
        "round: belongs under [settings]",
    ]


def test_a_pulsar_key_within_a_group_is_told_where_it_belongs(tmp_path: Path) -> None:
    path = written(tmp_path, "[settings.round]\nloadBalancerSheddingIntervalMinutes = 1\n")
    assert problems(path) == [
        "settings.round.loadBalancerSheddingIntervalMinutes: no such setting"
        " (did you mean loadBalancerSheddingIntervalMinutes, without round.?)"
    ]


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("TRIMTAB_METRICS_PORT", "x"),
        ("TRIMTAB_CHECKPOINT", ""),
        ("TRIMTAB_SETTINGS__ROUND__INTERVAL", "soon"),
        ("TRIMTAB_INTAKE__HALF_LIFE", "soon"),
    ],
)
def test_a_wrong_value_of_the_environment_names_its_variable(
    variable: str, value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, value)
    path = written(tmp_path, "[settings.round]\nsilence = -1.0\n")
    said = [each for each in problems(path) if "(from " in each]
    assert len(said) == 1
    assert said[0].endswith(f"(from {variable})")


@pytest.mark.parametrize(
    ("variable", "problem"),
    [
        ("TRIMTAB_SETTINGS", "settings: a table or list must be JSON (from TRIMTAB_SETTINGS)"),
        ("TRIMTAB_KAFKA", "kafka: a table or list must be JSON (from TRIMTAB_KAFKA)"),
        ("TRIMTAB_SPARK__JARS", "spark: a table or list must be JSON, in TRIMTAB_SPARK__JARS"),
    ],
)
def test_a_variable_that_is_not_json_is_named_and_its_value_is_not_told(
    monkeypatch: pytest.MonkeyPatch, variable: str, problem: str
) -> None:
    monkeypatch.setenv(variable, '{"secret": 1')
    with pytest.raises(InvalidConfig) as raised:
        load_config(None)
    assert raised.value.problems == [problem]


def test_a_file_in_another_encoding_is_told_as_such(tmp_path: Path) -> None:
    path = tmp_path / "trimtab.toml"
    path.write_bytes('checkpoint = "/tmp/\xe4"'.encode("iso-8859-1"))
    assert problems(path) == [f"{path}: not UTF-8 from byte 19 on: save it as UTF-8"]


def test_a_file_that_is_not_toml_hides_no_problem_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path, "= =")
    monkeypatch.setenv("TRIMTAB_TRIGGER_SECONDS", "-1")
    said = problems(path)
    assert said[0].startswith(f"{path}: not TOML: ")
    assert said[1].startswith("trigger_seconds: ")
