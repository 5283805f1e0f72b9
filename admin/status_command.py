"""`trimtab status`: is each cluster well, and if not, what to type next."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import closing
from typing import Annotated, Final, NamedTuple

import msgspec
import typer
from rich.console import Console
from rich.text import Text

from admin.ending import FINDINGS, USAGE, end, end_unserved
from admin.last_rounds import LastRounds, read_rounds
from admin.options import Config, Json
from admin.status import Finding, Grade, Health, assess, headline, read_health
from simulation.replay.recorded import Missing, RecordedTopics
from sinks.errors import SinkError
from streaming.config import InvalidConfig, load_config
from trimtab.cluster.intents import resolve_settings
from trimtab.cluster.job_settings import from_record
from trimtab.nearby import nearby
from trimtab.settings import Settings
from trimtab.settings.setting import InvalidSettings
from trimtab.shedding import DEFAULTS
from trimtab.state.memory import Memory
from trimtab.wire.rounds import JobSettings

_MARKS: Final[Mapping[str | None, tuple[str, str]]] = {
    None: ("well", "green"),
    Grade.LOOK: ("look", "yellow"),
    Grade.ACT: ("act", "red"),
}
"""The word for a grade, and its colour."""


class Status(NamedTuple):
    """One cluster, for people and programs."""

    cluster: str
    at: int
    """The batch timestamp of the newest round (epoch ms)."""
    headline: str
    findings: tuple[Finding, ...]

    @property
    def grade(self) -> Grade | None:
        """The most urgent one; None if all is well."""
        return self.findings[0].grade if self.findings else None


def status(
    cluster: Annotated[str | None, typer.Argument(help="Only this one.")] = None,
    json: Json = False,
    config: Config = None,
) -> None:
    """Say whether clusters are well, and what to type next if not; 6 if somebody must act."""
    try:
        kafka = load_config(config).kafka
        with closing(RecordedTopics(kafka.bootstrap, kafka.client)) as topics:
            clusters, started = read_rounds(topics)
            found = read_health(topics)
    except InvalidConfig as error:
        raise end("\n".join(error.problems), USAGE) from None
    except Missing as error:
        raise end(str(error), USAGE) from None
    except SinkError as error:
        raise end_unserved(error, config) from None
    if not found:
        raise end("no round of any cluster is recorded: start a job (trimtab job)", FINDINGS)
    if cluster is not None and cluster not in found:
        raise end(f"{cluster}: no round of it lately; {nearby(cluster, found)}", USAGE)
    now_ms = time.time_ns() // 1_000_000
    states = [
        status_of(found[name], settings_of(clusters.get(name), started), now_ms)
        for name in sorted(found)
        if cluster in (None, name)
    ]
    if json:
        told = [{**each._asdict(), "grade": each.grade or "well"} for each in states]
        print(msgspec.json.encode({"v": 1, "clusters": told}).decode())
    else:
        show(Console(), states)
    raise typer.Exit(FINDINGS if any(each.grade is Grade.ACT for each in states) else 0)


def status_of(health: Health, settings: Settings, now_ms: int) -> Status:
    """The state of one cluster."""
    findings = tuple(assess(health, settings, now_ms))
    return Status(health.newest.cluster, health.newest.at, headline(health), findings)


def settings_of(last: LastRounds | None, started: Mapping[str, JobSettings]) -> Settings:
    """The settings of a cluster's rounds; the defaults where they are not recorded."""
    if last is None or last.query not in started:
        return DEFAULTS
    try:
        begun = from_record(started[last.query])[1]
    except InvalidSettings:
        # Another version of the job wrote them.
        return DEFAULTS
    return resolve_settings(Memory(overrides=dict(last.overrides)), begun)[0]


def show(console: Console, states: list[Status]) -> None:
    """Print them; what to type stands on a line of its own, to be copied."""
    for each in states:
        _print(console, "", each.grade, f"{each.cluster}: {each.headline}")
        for finding in each.findings:
            _print(console, "  ", finding.grade, finding.what)
            if finding.next:
                _print(console, " " * 8, "", f"Next: {finding.next}")


def _print(console: Console, indent: str, grade: Grade | str | None, text: str) -> None:
    word, style = ("", "") if grade == "" else _MARKS[grade]
    line = Text.assemble(indent, (f"{word}  " if word else "", style), text)
    console.print(line, soft_wrap=True, highlight=False)
