"""What deploy/ starts: the chart's objects, their containers, and what those run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

import typer
import yaml
from typer.main import get_command

from admin.cli import build_app
from agent.main import run as run_agent
from deploy.chart import render_chart
from deploy.manifests import values_of

ROOT: Final = Path(__file__).parents[2]

VALUES: Final = ("", "spark", "brokers", "everything")
"""Names of the values that tests render the chart with; "" for its defaults."""

_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The one in C is ten times as fast."""


@cache
def documents(values: str) -> tuple[dict[str, Any], ...]:
    """All objects that the chart renders with the values of that name; not to be changed."""
    texts = render_chart(values_of(values), "trimtab").values()
    return tuple(each for text in texts for each in yaml.load_all(text, _LOADER) if each)


def containers(values: str) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """trimtab's own containers, each with its pod."""
    for each in documents(values):
        pod = each.get("spec", {}).get("template", {}).get("spec")
        for container in pod["containers"] if pod else []:
            if container["image"].startswith("trimtab-"):
                yield pod, container


def compose() -> dict[str, Any]:
    """The compose file."""
    found: dict[str, Any] = yaml.safe_load((ROOT / "deploy/compose.yaml").read_text("utf-8"))
    return found


def command_lines() -> Iterator[list[str]]:
    """Every command line of trimtab's in the chart and the compose file, as the shell has it."""
    for values in VALUES:
        for _, container in containers(values):
            yield container["args"]
        for each in documents(values):
            if each["kind"] == "SparkApplication":
                # spark_driver.py is `trimtab` with its arguments.
                yield ["trimtab", *each["spec"]["arguments"]]
    for service in compose()["services"].values():
        if service["image"].startswith("trimtab-"):
            yield service["command"]


def options_of(line: list[str]) -> tuple[set[str], set[str]]:
    """The options in a command line, and those that its command has."""
    program, *words = line
    command: Any = _only(run_agent) if program == "trimtab-agent" else _trimtab()
    while commands := getattr(command, "commands", None):
        command = commands[words.pop(0)]
    known = {option for parameter in command.params for option in parameter.opts}
    return {word.partition("=")[0] for word in words if word.startswith("--")}, known


@cache
def _trimtab() -> Any:
    return get_command(build_app())


def _only(function: Callable[..., None]) -> Any:
    """The command of a program that has no others."""
    single = typer.Typer(add_completion=False)
    single.command()(function)
    return get_command(single)
