"""`trimtab simulate`: runs a scenario under several strategies and compares them."""

from __future__ import annotations

import os
import sys
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console
from rich.table import Table

from admin.commands.tools.simulated_table import document_of, table_of
from admin.ending import end
from admin.exit_codes import USAGE
from simulation.scenarios import (
    InvalidScenario,
    Scenario,
    change_scenario,
    library,
    load,
)
from simulation.scenarios.comparisons import curve as curves
from simulation.scenarios.comparisons.comparing import Job, play
from simulation.scenarios.running import strategy
from simulation.scenarios.what_if import on_hardware, remove_domain, with_brokers
from trimtab.settings.setting import InvalidSettings
from trimtab.shedding import DEFAULTS, SHEDDERS

_SETTINGS: Final = "settings."
_DOMAINS: Final = 2
"""Fewest failure domains of which one may be lost."""


def _to_write(path: Path | None) -> Path | None:
    """The path of a file that can be written: said before the runs, not after them."""
    if path is not None and (path.is_dir() or not os.access(path.parent, os.W_OK)):
        raise typer.BadParameter(f"{path} cannot be written; name a file in a folder of yours")
    return path


def simulate(  # noqa: PLR0913 - the options of a command line
    scenario: Annotated[
        str | None, typer.Argument(help="A scenario of the library (--list), or a TOML file.")
    ] = None,
    strategies: Annotated[
        list[str] | None,
        typer.Option("--strategy", help="shedding, shedding+placement, or none; repeatable."),
    ] = None,
    seed: Annotated[list[int] | None, typer.Option(min=0, help="A seed; repeatable.")] = None,
    seeds: Annotated[str | None, typer.Option(help="A range of seeds: 1-3.")] = None,
    values: Annotated[
        list[str] | None,
        typer.Option("--set", help="A change: noise=0.5, step.factor=4, settings.avg.low_hits=3."),
    ] = None,
    brokers: Annotated[
        int | None, typer.Option(help="Try with this many more brokers; negative: fewer.")
    ] = None,
    hardware: Annotated[str | None, typer.Option(help="Try other hardware: 1:4.")] = None,
    lose_domain: Annotated[
        int | None, typer.Option(min=0, help="Lose a failure domain in this cycle.")
    ] = None,
    curve: Annotated[
        bool,
        typer.Option("--curve", help="What each planner.target costs in moves, beside avg."),
    ] = False,
    html: Annotated[
        Path | None, typer.Option(help="Write a page with pictures.", callback=_to_write)
    ] = None,
    json: Annotated[
        Path | None, typer.Option(help="Write every run's figures.", callback=_to_write)
    ] = None,
    processes: Annotated[int, typer.Option(min=1, help="How many runs at a time.")] = os.cpu_count()
    or 1,
    listed: Annotated[bool, typer.Option("--list", help="List the library.")] = False,
) -> None:
    """Run a scenario under strategies, without Kafka, Spark or Redis; compare the results."""
    if listed or scenario is None:
        _show_library()
        return
    try:
        given = _values(values or [])
        made = _with(load(scenario, **given[0]), brokers, hardware, lose_domain)
        tuned = DEFAULTS.changed(given[1])
        played = [change_scenario(made, {"seed": s}) for s in _seeds(seed, seeds) or [made.seed]]
        if curve:
            _refuse_beside_curve(strategies, html, given[1])
            jobs = curves.jobs_of(played, tuned)
        else:
            chosen = [strategy(name, tuned) for name in strategies or SHEDDERS]
            jobs = [Job(each, settings) for settings in chosen for each in played]
    except (InvalidScenario, InvalidSettings) as error:
        raise end("\n".join(error.problems), USAGE) from None
    except OSError as error:
        raise end(f"{scenario}: {error.strerror}", USAGE) from None
    except ValueError as error:
        raise end(str(error), USAGE) from None
    outcomes = [*play(jobs, processes)]
    name = Path(scenario).stem
    Console(width=None if sys.stdout.isatty() else 200).print(table_of(name, outcomes, curve=curve))
    if json is not None:
        json.write_bytes(document_of(name, outcomes, played[0], curve=curve))
    if html is not None:
        # Imported here: the plotting library takes a second to import.
        from simulation.scenarios.comparisons.report import page

        html.write_text(page(outcomes, name, " ".join(["trimtab", *sys.argv[1:]])))


def _show_library() -> None:
    table = Table("scenario", "what happens", box=None, pad_edge=False)
    for name in library():
        table.add_row(name, load(name).about)
    Console().print(table)


def _values(given: Sequence[str]) -> tuple[dict[str, object], dict[str, object]]:
    """Scenario values and settings, by dotted name; raises InvalidScenario."""
    scenario: dict[str, object] = {}
    settings: dict[str, object] = {}
    problems = []
    for each in given:
        name, equals, text = each.partition("=")
        if not equals:
            problems.append(f"--set {each}: must be name=value")
        elif name.startswith(_SETTINGS):
            settings[name[len(_SETTINGS) :]] = _value(text)
        else:
            scenario[name] = _value(text)
    if problems:
        raise InvalidScenario(problems)
    return scenario, settings


def _value(text: str) -> object:
    """Parse as TOML; text that is not a TOML value stays text."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _with(
    scenario: Scenario, brokers: int | None, hardware: str | None, lose_domain: int | None
) -> Scenario:
    if brokers is not None:
        scenario = with_brokers(scenario, brokers)
    if hardware is not None:
        scenario = on_hardware(scenario, hardware)
    if lose_domain is not None:
        if scenario.domains < _DOMAINS:
            raise ValueError(
                f"--lose-domain: the scenario has {scenario.domains} failure domains; give it "
                f"{_DOMAINS} or more with --set domains={_DOMAINS}, as one must be left"
            )
        scenario = remove_domain(scenario, lose_domain)
    return scenario


def _seeds(each: Sequence[int] | None, span: str | None) -> list[int]:
    """Parse the seeds; raises ValueError."""
    found = list(each or [])
    if span is not None:
        first, dash, last = span.partition("-")
        if not (dash and first.isdigit() and last.isdigit() and int(first) <= int(last)):
            raise ValueError(f"--seeds {span}: must be from one to another: 1-3")
        found += range(int(first), int(last) + 1)
    return found


def _refuse_beside_curve(
    strategies: Sequence[str] | None, html: Path | None, settings: Mapping[str, object]
) -> None:
    """Raise ValueError for options that a curve does not use."""
    given = [name for name, value in (("--strategy", strategies), ("--html", html)) if value]
    given += [f"--set {_SETTINGS}{name}" for name in curves.TARGET_NAMES if name in settings]
    if given:
        raise ValueError("\n".join(f"{each}: --curve needs none" for each in given))
