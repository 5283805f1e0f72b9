"""The alerts are valid, each fires on what it is for, and none fires while all is well."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
from prometheus_client.parser import text_string_to_metric_families
from redis import Redis

from tests.alerts.broken import BROKEN, CALM, Stack
from tests.support.prometheus import RULES, needs_prometheus, promtool

ROOT: Final = Path(__file__).parents[2]
TEXT: Final = RULES.read_text("utf-8")
MINUTES: Final = 35
"""Of a story: the longest of an alert's windows and waits that need more than the calm."""
INSTANCE: Final = "job:9780"
"""Prometheus adds it when it scrapes."""


def alerts() -> dict[str, str]:
    """Each alert with its runbook."""
    return dict(re.findall(r"- alert: (\w+)\n.*?runbook: (\S+)", TEXT, re.DOTALL))


def test_every_alert_has_a_story_and_a_runbook_of_its_own() -> None:
    assert alerts().keys() == BROKEN.keys(), "tests/alerts/broken.py shows each alert fire"
    pages = [ROOT / page for page in alerts().values()]
    index = ROOT / "docs" / "runbooks" / "README.md"
    assert sorted([*pages, index]) == sorted(index.parent.glob("*.md"))
    for alert, page in alerts().items():
        assert alert in (ROOT / page).read_text("utf-8")


@needs_prometheus
def test_the_rules_are_valid() -> None:
    found = promtool("check", "rules", str(RULES))
    assert found.returncode == 0, found.stdout.decode() + found.stderr.decode()


@needs_prometheus
def test_each_alert_fires_on_what_it_is_for_and_is_silent_before(
    client: Redis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tests = []
    before, after = (1, CALM - 1), (CALM, MINUTES)
    for alert, breaks in BROKEN.items():
        for broken in breaks:
            with monkeypatch.context() as patch:
                stack = Stack(client, tmp_path, patch)
                series = tell(stack, partial(play, broken))
            tests.append(expect(series, alert, {before: False, after: True}))
    check(tmp_path, tests)


@needs_prometheus
def test_none_fires_while_all_is_well(
    client: Redis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    series = tell(Stack(client, tmp_path, monkeypatch), Stack.calm)
    check(tmp_path, [expect(series, alert, {(1, MINUTES): False}) for alert in alerts()])


def play(broken: Callable[[Stack], None], stack: Stack) -> None:
    (broken if stack.minute >= CALM else Stack.calm)(stack)


def tell(stack: Stack, minute: Callable[[Stack], None]) -> dict[str, str]:
    """Every series with its values, one a minute, as promtool reads them."""
    told: dict[str, list[str]] = defaultdict(list)
    for number in range(MINUTES + 1):
        stack.minute = number
        minute(stack)
        for name, value in samples(stack.shown.text().decode()):
            # A series that has just begun is absent before, and stays from then on.
            told[name] += ["_"] * (number - len(told[name]))
            told[name].append(value)
    return {name: " ".join(values) for name, values in told.items()}


def samples(text: str) -> Iterable[tuple[str, str]]:
    for family in text_string_to_metric_families(text):
        for each in family.samples:
            labels = {**each.labels, "instance": INSTANCE, "job": "trimtab-job"}
            named = ",".join(f"{name}={json.dumps(value)}" for name, value in labels.items())
            yield f"{each.name}{{{named}}}", repr(float(each.value)).replace("nan", "NaN")


def expect(
    series: dict[str, str], alert: str, firing: dict[tuple[int, int], bool]
) -> dict[str, Any]:
    """A test of promtool: whether the alert fires from one minute to another."""
    fires = f'ALERTS{{alertname="{alert}",alertstate="firing"}}'
    return {
        "name": f"{alert}: {sorted(firing)}",
        "interval": "1m",
        "input_series": [{"series": name, "values": told} for name, told in series.items()],
        "promql_expr_test": [
            {
                "expr": f"max(max_over_time({fires}[{end - start}m])) or vector(0)",
                "eval_time": f"{end}m",
                "exp_samples": [{"labels": "{}", "value": float(expected)}],
            }
            for (start, end), expected in firing.items()
        ],
    }


def check(folder: Path, tests: list[dict[str, Any]]) -> None:
    # JSON is YAML.
    file = folder / "alerts_test.yml"
    whole = {"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": tests}
    file.write_text(json.dumps(whole), "utf-8")
    found = promtool("test", "rules", str(file))
    assert found.returncode == 0, found.stdout.decode() + found.stderr.decode()
