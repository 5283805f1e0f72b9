"""Makes the pictures of docs/deciding.md, one a strategy: ``python -m admin.documents.pictures``.

All strategies start from the same fleet, with their defaults, so the pictures can be compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

import numpy as np

from admin.documents.drawing import Drawing, Guide, draw
from simulation.scenarios.outcomes.outcome import ScenarioOutcome
from simulation.scenarios.reading import load
from simulation.scenarios.running import run, strategy
from simulation.scenarios.scenario import Scenario
from simulation.scenarios.world.state import World
from trimtab.arrays import Floats
from trimtab.settings import Settings

FOLDER: Final = Path("docs/pictures")
COMMAND: Final = (
    "trimtab simulate skewed --set brokers=8 --set bundles=120 --set namespaces=8 --set mean=0.5 "
    "--set start.spread=0.8 --set cycles=30"
)
"""What shows the figures of the same runs in a terminal."""

TITLES: Final[Mapping[str, str]] = {
    "trimtab": "trimtab's planner",
    "threshold": "ThresholdShedder",
    "overload": "OverloadShedder",
    "uniform": "UniformLoadShedder",
    "avg": "AvgShedder",
    "transfer": "TransferShedder",
}


def scenario() -> Scenario:
    """The fleet of `COMMAND`."""
    name, *changes = COMMAND.removeprefix("trimtab simulate ").split(" --set ")
    pairs = (change.partition("=") for change in changes)
    return load(name, **{key: float(said) if "." in said else int(said) for key, _, said in pairs})


def make(name: str) -> str:
    """The picture of one strategy of `TITLES`."""
    settings, fleet = strategy(name), scenario()
    outcome = run(fleet, settings)
    levels = np.vstack([World(fleet).levels, outcome.levels])
    return draw(
        Drawing(
            title=TITLES[name],
            about=_about(outcome, levels),
            levels=levels,
            moves=outcome.moves,
            guides=_GUIDES[name](levels, settings),
        )
    )


def _about(outcome: ScenarioOutcome, levels: Floats) -> str:
    first, last = (100 * float(np.ptp(each)) for each in (levels[0], levels[-1]))
    moves = f"{outcome.figures.moves} move{'s' * (outcome.figures.moves != 1)}"
    return f"{moves}; the range of usage goes from {first:.0f} to {last:.0f} points"


def _trimtab(levels: Floats, settings: Settings) -> list[Guide]:
    target, mean = settings.planner.target, levels.mean(axis=1)
    said = f"the target: {100 * target:.0f} points from the highest to the lowest"
    return [Guide(said, mean + target / 2), Guide("", mean - target / 2)]


def _threshold(levels: Floats, settings: Settings) -> list[Guide]:
    threshold = settings.threshold.threshold
    return [Guide(f"average + {100 * threshold:.0f} points", levels.mean(axis=1) + threshold)]


def _overload(levels: Floats, settings: Settings) -> list[Guide]:
    limit = settings.round.overloaded_threshold
    return [Guide(f"{limit:.0%}".replace("%", " %"), np.full(len(levels), limit))]


def _uniform(levels: Floats, settings: Settings) -> list[Guide]:
    """In the simulator a broker's messages are in proportion to its usage."""
    times = 1 + settings.uniform.rate_difference / 100
    return [Guide(f"{times:g} times the idlest broker", levels.min(axis=1) * times)]


def _avg(levels: Floats, settings: Settings) -> list[Guide]:
    own, idlest = settings.avg, levels.min(axis=1)
    return [
        Guide(f"idlest + {gap:.0f} points, {hits} rounds in a row", idlest + gap / 100)
        for gap, hits in ((own.low_threshold, own.low_hits), (own.high_threshold, own.high_hits))
    ]


def _transfer(levels: Floats, settings: Settings) -> list[Guide]:
    accepted = 100 * settings.transfer.target_deviation
    said = f"average + standard deviation; {accepted:.0f} points are accepted"
    return [Guide(said, levels.mean(axis=1) + levels.std(axis=1))]


_GUIDES: Final[Mapping[str, Callable[[Floats, Settings], list[Guide]]]] = {
    "trimtab": _trimtab,
    "threshold": _threshold,
    "overload": _overload,
    "uniform": _uniform,
    "avg": _avg,
    "transfer": _transfer,
}


def pictures() -> Iterator[tuple[Path, str]]:
    """Each file with its text."""
    for name in TITLES:
        yield FOLDER / f"{name}.svg", make(name)


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for file, text in pictures():
        file.write_text(text, "utf-8")
