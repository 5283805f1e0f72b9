"""``python -m simulation.scenarios``: writes the pages that compare strategies, into docs/."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Final

import typer

from simulation.scenarios.comparisons.comparing import Job, by_strategy, play
from simulation.scenarios.comparisons.document import ALL, ROUGH, ROUGH_PAGE, VARIANTS, label
from simulation.scenarios.outcomes.outcome import ScenarioOutcome
from simulation.scenarios.reading import library, load
from simulation.scenarios.running import strategy

DOCS: Final = Path("docs")


def main(
    seeds: Annotated[int, typer.Option(min=1, help="Seeds 1 to this one.")] = 3,
    rough: Annotated[bool, typer.Option("--rough", help="The page of rough scenarios.")] = False,
    output: Annotated[Path | None, typer.Option(help="Where the page goes.")] = None,
    processes: Annotated[int, typer.Option(min=1)] = os.cpu_count() or 1,
) -> None:
    """Run everything and write one table."""
    results: dict[str, dict[str, list[ScenarioOutcome]]] = {}
    page = ROUGH_PAGE if rough else ALL
    settings = [strategy(name) for name in page.strategies]
    for name, changes in _runs(rough):
        print(label(name, changes), file=sys.stderr, flush=True)
        jobs = [
            Job(load(name, **changes, seed=seed), each)
            for each in settings
            for seed in range(1, seeds + 1)
        ]
        results[label(name, changes)] = by_strategy([*play(jobs, processes)])
    command = f"python -m simulation.scenarios{' --rough' * rough} --seeds {seeds}"
    said = "seed 1" if seeds == 1 else f"seeds 1 to {seeds}"
    (output or DOCS / page.file).write_text(page.write(results, said, command))


def _runs(rough: bool) -> Iterator[tuple[str, Mapping[str, object]]]:
    for name in ROUGH if rough else library():
        variants = ROUGH[name] if rough else VARIANTS.get(name, [] if name in ROUGH else [{}])
        yield from ((name, changes) for changes in variants)


if __name__ == "__main__":
    typer.run(main)
