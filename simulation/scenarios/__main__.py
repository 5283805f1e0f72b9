"""``python -m simulation.scenarios``: writes every strategy and scenario to docs/scenarios.md."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, Final

import typer

from simulation.scenarios.comparing import Job, by_strategy, play
from simulation.scenarios.document import VARIANTS, document, label
from simulation.scenarios.outcome import ScenarioOutcome
from simulation.scenarios.reading import library, load
from simulation.scenarios.running import strategy
from trimtab.settings import SHEDDING

DOCUMENT: Final = Path("docs") / "scenarios.md"


def main(
    seeds: Annotated[int, typer.Option(min=1, help="Seeds 1 to this one.")] = 3,
    output: Annotated[Path, typer.Option(help="Where the document goes.")] = DOCUMENT,
    processes: Annotated[int, typer.Option(min=1)] = os.cpu_count() or 1,
) -> None:
    """Run everything and write one table."""
    results: dict[str, dict[str, list[ScenarioOutcome]]] = {}
    settings = [strategy(name) for name in SHEDDING]
    for name in library():
        for changes in VARIANTS.get(name, [{}]):
            print(label(name, changes), file=sys.stderr, flush=True)
            jobs = [
                Job(load(name, **changes, seed=seed), each)
                for each in settings
                for seed in range(1, seeds + 1)
            ]
            results[label(name, changes)] = by_strategy([*play(jobs, processes)])
    command = f"python -m simulation.scenarios --seeds {seeds}"
    said = "seed 1" if seeds == 1 else f"seeds 1 to {seeds}"
    output.write_text(document(results, said, command))


if __name__ == "__main__":
    typer.run(main)
