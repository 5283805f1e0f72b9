"""`trimtab demo`: Kafka, Redis, the job and a skewed fleet, shown until the time is up.

In every case it stops what it started: the job, then the fleet, then Kafka and Redis.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.live import Live

from admin.demo import processes
from admin.demo.display import Scene, line, picture
from admin.demo.feed import RoundReader, newest_snapshot
from admin.demo.starting import fail_start, find_step, read_log
from admin.demo.story import Story
from admin.demo.suggestions import suggestions
from admin.spinner import Spinner
from deploy.process import Process
from deploy.stack import Stack
from simulation.profile import Profile
from sinks.kafka.topics import ensure_topics

FOLDER: Final = Path("build/demo")
_TICK_SECONDS: Final = 0.5
_LINE_SECONDS: Final = 5.0
_FLEET_SECONDS: Final = 60.0
_STOP_SECONDS: Final = 30.0
_ENDING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True, slots=True)
class DemoOptions:
    """Options of a demo; None: as in deploy/demo_fleet.toml."""

    seconds: float = 180.0
    """How long it shows the fleet, from the first round of all brokers on."""
    start_seconds: float = 300.0
    """How long Spark and the fleet may take until then."""
    keep: bool = False
    """Whether everything runs on afterwards, until Ctrl-C."""
    seed: int | None = None
    brokers: int | None = None
    bundles: int | None = None
    plain: bool = False


@dataclass(frozen=True, slots=True)
class Running:
    """The started processes, for the view."""

    job: Process
    fleet: Process
    api: Process
    reader: RoundReader
    metrics_url: str
    api_url: str
    began: float
    """By time.monotonic."""


class Demo:
    """One run; `story` and `moves` are its results."""

    def __init__(self, options: DemoOptions, console: Console) -> None:
        self._options = options
        self._console = console
        self._plain = options.plain or not console.is_terminal
        self._folder = FOLDER.resolve()
        self.story = Story(0, 0.0)
        self.moves = 0

    def run(self) -> None:
        """Run until the time is up or Ctrl-C; raises DemoFailed and the servers' errors."""
        with _all_end_as_ctrl_c(), processes.clean_folder(self._folder), ExitStack() as started:
            with Spinner(self._console, plain=self._plain) as step:
                running = self._start(started, step)
            with suppress(KeyboardInterrupt):
                self._console.print(f"see it in a browser: {running.api_url}", highlight=False)
                self._show(running)
                self._suggest(running)
                if self._options.keep:
                    self._keep(running)

    def _start(self, started: ExitStack, step: Spinner) -> Running:
        processes.settings_file(self._folder, "demo_job.toml")
        profile = self._profile()
        self.story = Story(profile.brokers, processes.GOAL)
        stack = Stack(self._folder, report=step)
        started.enter_context(stack)
        step("making the topics")
        ensure_topics(stack.kafka_bootstrap)
        processes.environment_file(self._folder, stack)
        step("starting the fleet and the job")
        began = time.monotonic()
        port = processes.port_near(processes.METRICS_PORT)
        job = processes.job(self._folder, stack, port)
        agents_port = processes.port_near(processes.AGENTS_PORT)
        fleet = processes.fleet(self._folder, stack, profile, agents_port)
        api_port = processes.port_near(processes.API_PORT)
        api = processes.api(self._folder, stack, api_port)
        reader = started.enter_context(RoundReader(stack.kafka_bootstrap))
        started.callback(self._stop, api)
        started.callback(self._stop, fleet)
        started.callback(self._stop, job)
        # Undone first: from there on a second Ctrl-C must not interrupt.
        started.callback(_ignore_endings)
        job.start(lambda: True, 0)
        fleet.start(lambda: newest_snapshot(fleet.log) is not None, _FLEET_SECONDS)
        api.start(lambda: True, 0)
        here = "http://127.0.0.1"
        return Running(
            job, fleet, api, reader, f"{here}:{port}/metrics", f"{here}:{api_port}", began
        )

    def _profile(self) -> Profile:
        options = self._options
        committed = processes.settings_file(self._folder, "demo_fleet.toml")
        given = {"seed": options.seed, "brokers": options.brokers, "bundles": options.bundles}
        return processes.fleet_profile(committed, given)

    def _show(self, running: Running) -> None:
        """Show the start, then the fleet for the time asked for."""
        shown_at = -_LINE_SECONDS
        with Live(console=self._console, auto_refresh=False) as live:
            while True:
                scene = self._look(running)
                if not self._plain:
                    live.update(picture(scene), refresh=True)
                elif scene.elapsed - shown_at >= _LINE_SECONDS or scene.left <= 0:
                    self._console.print(line(scene), highlight=False, soft_wrap=True)
                    shown_at = scene.elapsed
                if scene.left <= 0:
                    break
        if not self.story.rounds:
            step, bound = scene.starting, self._options.start_seconds
            raise fail_start(bound, step, running.job, running.fleet, _short)

    def _look(self, running: Running) -> Scene:
        records = list(running.reader.read(_TICK_SECONDS))
        elapsed = time.monotonic() - running.began
        processes.check(running.job, running.fleet, running.api)
        fleet = newest_snapshot(running.fleet.log)
        if fleet is not None:
            self.moves = fleet.moves
            for record in records:
                self.story = self.story.told(record, elapsed, 100 * fleet.spread)
        first = self.story.first
        options = self._options
        until = first.elapsed + options.seconds if first else options.start_seconds
        return Scene(
            story=self.story,
            fleet=fleet,
            starting="" if first else find_step(read_log(running.job.log), fleet),
            elapsed=elapsed,
            left=until - elapsed,
            metrics_url=running.metrics_url,
            logs=str(FOLDER),
        )

    def _suggest(self, running: Running) -> None:
        """Print commands to try, which work while the servers run."""
        for text in suggestions(self.story, FOLDER, running.api_url, kept=self._options.keep):
            self._console.print(text, highlight=False, soft_wrap=True, markup=False)

    def _keep(self, running: Running) -> None:
        """Leave everything running until Ctrl-C; raises DemoFailed if a process ends."""
        while True:
            processes.check(running.job, running.fleet, running.api)
            time.sleep(_TICK_SECONDS)

    def _stop(self, process: Process) -> None:
        process.stop(_STOP_SECONDS)
        self._console.print(f"{process.name} is stopped", highlight=False)


def _short(path: Path) -> Path:
    """A path as one would type it here."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


@contextmanager
def _all_end_as_ctrl_c() -> Iterator[None]:
    """Make SIGTERM and a closed terminal unwind as Ctrl-C does."""
    before = {number: signal.getsignal(number) for number in _ENDING}
    for number in _ENDING:
        signal.signal(number, signal.default_int_handler)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _ignore_endings() -> None:
    for number in _ENDING:
        signal.signal(number, signal.SIG_IGN)
