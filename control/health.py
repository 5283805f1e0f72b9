"""What a cluster's last rounds say of its health: each finding with the next command to type."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from control.next_command import command
from control.rounds import ClusterRounds
from trimtab.explaining.words import format_count, name_some, percent, points, seconds
from trimtab.migration.life import MigrationState
from trimtab.ownership import State
from trimtab.reasons import Rule
from trimtab.settings import Settings
from trimtab.wire.rounds import RoundRecord

_LATE_ROUNDS: Final = 3
"""Rounds that may be missing before the cluster counts as without rounds."""
_NAMED: Final = 5
"""Brokers and problems that are named; the rest is counted."""


class Grade(StrEnum):
    """How urgent a finding is."""

    ACT = "act"
    """Somebody must do something."""
    LOOK = "look"
    """It may end by itself, or is intended."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What is found, and what to type next; nothing if only to wait helps."""

    grade: Grade
    what: str
    next: str = ""


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


def status_of(last: ClusterRounds, now_ms: int) -> Status:
    """The state of one cluster."""
    newest = last.newest
    return Status(newest.cluster, newest.at, headline(last), tuple(assess(last, now_ms)))


def assess(last: ClusterRounds, now_ms: int) -> list[Finding]:
    """The findings on a cluster, the most urgent first."""
    settings = last.settings()
    parts = (
        _rounds(last, settings, now_ms),
        _service(last.newest),
        _stopped(last, now_ms),
        _held(last),
        _migrations(last),
        _brokers(last.newest),
        _load(last.regular, settings),
        _problems(last.newest),
    )
    found = [finding for part in parts for finding in part]
    return sorted(found, key=lambda finding: [*Grade].index(finding.grade))


def headline(last: ClusterRounds) -> str:
    """The cluster's figures in a line."""
    newest, regular = last.newest, last.regular
    summary = regular.summary
    figures = [
        format_count(int(summary.get("brokers", 0)), "broker"),
        format_count(int(summary.get("bundles", 0)), "bundle"),
        f"usage {percent(summary.get('usage_min', 0))} to {percent(summary.get('usage_max', 0))}",
        f"range {points(summary.get('usage_range', 0.0))}",
        f"round {newest.round}: {_decided(regular)}",
    ]
    return ", ".join(figures)


def _decided(record: RoundRecord) -> str:
    done = [
        format_count(len(part), noun)
        for part, noun in (
            (record.moves, "move"),
            (record.splits, "split"),
            (record.merges, "merge"),
            (record.repairs, "repair"),
        )
        if part
    ]
    return ", ".join(done) or record.skipped or "nothing to do"


def late_from(last: ClusterRounds, settings: Settings) -> float:
    """When the next round counts as missing (epoch ms); infinite if rounds have no interval."""
    interval = settings.round.interval
    return last.newest.at + 1000 * _LATE_ROUNDS * interval if interval else math.inf


def _rounds(last: ClusterRounds, settings: Settings, now_ms: int) -> Iterator[Finding]:
    age_s, interval = (now_ms - last.newest.at) / 1000, settings.round.interval
    if now_ms > late_from(last, settings):
        what = f"no round for {seconds(age_s)}, though one is due every {seconds(interval)}"
        yield Finding(Grade.ACT, f"{what}: does the job run?", "trimtab doctor")


def _service(record: RoundRecord) -> Iterator[Finding]:
    if record.quarantined:
        what = f"{format_count(record.quarantined, 'bundle')} quarantined"
        yield Finding(
            Grade.ACT,
            f"{what}: owner after owner died; no broker gets them until somebody readmits them",
            command("bundles", "list", "--state", State.QUARANTINED, "--cluster", record.cluster),
        )
    if waiting := record.unserved - record.quarantined:
        what = f"{format_count(waiting, 'bundle')} without a broker that serves"
        yield Finding(
            Grade.ACT,
            f"{what}: they get one unless what follows forbids it",
            command("bundles", "list", "--unserved", "--cluster", record.cluster),
        )
    for cause, level in sorted(record.causes.items()):
        grade = Grade.ACT if level == "unstable" else Grade.LOOK
        yield Finding(
            grade,
            f"ownership is {level} because of {cause}: {_FOR_DOUBT.get(cause, '')}".rstrip(),
            "trimtab doctor"
            if cause in ("clock", "redis")
            else command("brokers", "list", "--cluster", record.cluster),
        )


def _stopped(last: ClusterRounds, now_ms: int) -> Iterator[Finding]:
    record, cluster = last.regular, last.newest.cluster
    if record.observe_only:
        yield Finding(
            Grade.LOOK,
            "the job only observes",
            command("config", "set", "round.observe_only=false", "--cluster", cluster, "--execute"),
        )
    if last.newest.frozen_until > now_ms:
        left = seconds((last.newest.frozen_until - now_ms) / 1000)
        yield Finding(
            Grade.LOOK,
            f"no strategy is asked for {left} more",
            command("resume", "--cluster", cluster, "--execute"),
        )
    if record.skipped == Rule.PAUSED:
        harms = last.newest.unserved or last.newest.gone or _hot(record, last.settings())
        yield Finding(
            Grade.ACT if harms else Grade.LOOK,
            "paused by an operator: not even bundles of lost brokers are given to others",
            command("resume", "--cluster", cluster, "--execute"),
        )
    elif record.skipped == Rule.DISABLED:
        yield Finding(
            Grade.LOOK,
            "shedding is off",
            command("config", "set", "round.enabled=true", "--cluster", cluster, "--execute"),
        )
    elif record.skipped == Rule.TOO_FEW_BROKERS:
        yield Finding(
            Grade.ACT,
            "fewer than two brokers may get bundles",
            command("brokers", "list", "--cluster", cluster),
        )
    elif record.skipped == Rule.UNCOMPUTABLE:
        hottest = max(record.usage, key=record.usage.__getitem__, default="")
        yield Finding(
            Grade.ACT,
            "what a broker reports cannot be computed with",
            command("why", hottest or "BROKER", "--cluster", cluster),
        )


def _held(last: ClusterRounds) -> Iterator[Finding]:
    record, cluster = last.regular, last.newest.cluster
    if last.waiting:
        count, newest = format_count(len(last.waiting), "plan"), last.waiting[-1]
        yield Finding(
            Grade.LOOK,
            f"{count} for a person to approve or reject: {name_some(last.waiting[::-1], _NAMED)}",
            command("plans", "show", newest, "--cluster", cluster),
        )
    elif record.held is not None:
        yield Finding(
            Grade.LOOK,
            f"{format_count(record.held.changes, 'change')} wait for a window, or are only shown",
            command("windows", "show", "--cluster", cluster),
        )


def _migrations(last: ClusterRounds) -> Iterator[Finding]:
    for it in last.migrations:
        if it.stopped:
            what = f"the migration {it.id} is paused by its gate: {it.why}"
            words = ("migration", "report", it.id, "--cluster", it.cluster)
            yield Finding(Grade.ACT, what, command(*words))
            continue
        state = "paused by a person" if it.state is MigrationState.PAUSED else it.state.value
        gone = f"{it.total.migrated} of {format_count(it.total.topics, 'topic')} on green"
        words = ("migration", "status", it.id, "--cluster", it.cluster)
        yield Finding(Grade.LOOK, f"the migration {it.id} is {state}, {gone}", command(*words))


def _brokers(record: RoundRecord) -> Iterator[Finding]:
    if record.gone:
        yield Finding(
            Grade.LOOK, f"lost: {name_some(record.gone, _NAMED)}; their bundles go to others"
        )
    if record.held_back:
        yield Finding(
            Grade.LOOK, f"back after a loss, and held back: {name_some(record.held_back, _NAMED)}"
        )
    if record.draining:
        yield Finding(
            Grade.LOOK,
            f"being drained: {name_some(record.draining, _NAMED)}",
            command(
                "brokers", "undrain", record.draining[0], "--cluster", record.cluster, "--execute"
            ),
        )


def _load(record: RoundRecord, settings: Settings) -> Iterator[Finding]:
    full, hot = settings.round.overloaded_threshold, _hot(record, settings)
    if hot:
        hottest = hot[-1]
        what = f"above {percent(full)}: {name_some(hot[::-1], _NAMED)}; {hottest} at "
        yield Finding(
            Grade.ACT,
            what + percent(record.usage[hottest]),
            command("brokers", "describe", hottest, "--cluster", record.cluster),
        )
    elif record.skipped == Rule.NO_PROPOSAL and record.usage:
        hottest = max(record.usage, key=record.usage.__getitem__)
        yield Finding(
            Grade.LOOK,
            f"brokers are {points(record.summary.get('usage_range', 0.0))} apart, and the strategy "
            "moves nothing",
            command("why", hottest, "--cluster", record.cluster),
        )
    for busy in record.busy_topics[:_NAMED]:
        yield Finding(
            Grade.LOOK, f"{busy.bundle}: one topic keeps it busy; give it more partitions"
        )


def _hot(record: RoundRecord, settings: Settings) -> list[str]:
    """The overloaded brokers, the busiest last."""
    full = settings.round.overloaded_threshold
    return sorted(
        (b for b, use in record.usage.items() if use > full), key=record.usage.__getitem__
    )


def _problems(record: RoundRecord) -> Iterator[Finding]:
    for problem in record.problems[:_NAMED]:
        yield Finding(Grade.LOOK, problem)
    if len(record.problems) > _NAMED:
        yield Finding(Grade.LOOK, f"and {len(record.problems) - _NAMED} more problems")


_FOR_DOUBT: Final[Mapping[str, str]] = {
    "clock": "Redis' clock and the job's disagree; set Redis' machine by NTP",
    "redis": "the store is closed or away; it opens by itself after a lease",
    "silence": "many brokers do not report; look at them, and at their way to Kafka",
    "losses": "many brokers were lost at once; look at their network",
}
"""What causes of doubt mean, and what helps."""
