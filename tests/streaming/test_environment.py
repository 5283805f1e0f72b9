"""A misspelt variable is refused; what an orchestrator adds to the environment is not."""

from __future__ import annotations

import pytest

from streaming.config import InvalidConfig, JobConfig, load_config
from streaming.environment import Unknown, find_unknown, variables_of


@pytest.mark.parametrize(
    ("variable", "near"),
    [
        ("TRIMTAB_REDIS_ULR", "TRIMTAB_REDIS_URL"),
        ("TRIMTAB_KAFKA_BOOTSTRAP", "TRIMTAB_KAFKA__BOOTSTRAP"),
        ("TRIMTAB_CHECKPOINTS", "TRIMTAB_CHECKPOINT"),
        ("TRIMTAB_METRIC_PORT", "TRIMTAB_METRICS_PORT"),
        ("TRIMTAB__REDIS_URL", "TRIMTAB_REDIS_URL"),
        ("TRIMTAB_STANDBY__", "TRIMTAB_STANDBY"),
    ],
)
def test_a_near_miss_is_refused_and_the_setting_named(
    variable: str, near: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, "1")
    with pytest.raises(InvalidConfig) as caught:
        load_config(None)
    assert caught.value.problems == [f"{variable}: no such setting (did you mean {near}?)"]


def test_what_kubernetes_says_of_a_service_of_this_name_stops_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    injected = {
        "TRIMTAB_SERVICE_HOST": "10.0.0.1",
        "TRIMTAB_SERVICE_PORT": "9780",
        "TRIMTAB_SERVICE_PORT_METRICS": "9780",
        "TRIMTAB_PORT": "tcp://10.0.0.1:9780",
        "TRIMTAB_PORT_9780_TCP": "tcp://10.0.0.1:9780",
        "TRIMTAB_PORT_9780_TCP_PROTO": "tcp",
        "TRIMTAB_PORT_9780_TCP_PORT": "9780",
        "TRIMTAB_PORT_9780_TCP_ADDR": "10.0.0.1",
        "TRIMTAB_METRIC_PORT": "tcp://10.0.0.1:9780",
    }
    for name, value in injected.items():
        monkeypatch.setenv(name, value)
    assert load_config(None) == JobConfig()
    assert find_unknown(injected, JobConfig) == []


def test_others_are_found_and_refused_by_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRIMTAB_IMAGE", "registry/trimtab")
    assert load_config(None) == JobConfig()
    found = find_unknown({"TRIMTAB_IMAGE": "registry/trimtab", "HOME": "/"}, JobConfig)
    assert found == [Unknown("TRIMTAB_IMAGE", "")]


def test_what_commands_read_stops_no_job_and_is_no_typo() -> None:
    variables = dict.fromkeys(("TRIMTAB_CONTEXTS", "TRIMTAB_CONTEXT", "TRIMTAB_CLUSTER"), "east")
    assert find_unknown(variables, JobConfig) == []


def test_every_setting_is_known_by_its_variable() -> None:
    variables = dict.fromkeys(variables_of(JobConfig), "1")
    more = {"TRIMTAB_SETTINGS__ROUND__INTERVAL": "2", "trimtab_redis_url": "redis://a"}
    assert "TRIMTAB_KAFKA__SECURITY__PASSWORD" in variables
    assert find_unknown(variables | more, JobConfig) == []
