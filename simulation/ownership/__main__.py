"""``python -m simulation.ownership --seed 7``: makes one run; the same seed repeats it."""

from __future__ import annotations

import logging
import time
from typing import Annotated

import structlog
import typer

from simulation.ownership.oracle import Violation
from simulation.ownership.run import Simulation
from simulation.ownership.world import LARGE, Size

_ONE_IS_LARGE = 5
"""One seed in this many has a world with thousands of bundles."""


def main(
    seed: Annotated[int, typer.Option(help="The first run's.")] = 1,
    runs: Annotated[int, typer.Option(min=1, help="With this seed and the next ones.")] = 1,
    transitions: Annotated[int, typer.Option(min=1, help="Accepted changes a run.")] = 100_000,
) -> None:
    """Run ownership under faults; exits with 1 if two brokers served at once, or worse."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    for each in range(seed, seed + runs):
        began = time.monotonic()
        try:
            size = Size() if each % _ONE_IS_LARGE else LARGE
            tally = Simulation(each, size=size).run(transitions)
        except Violation as error:
            print(f"seed {each}: {error}")
            print(
                f"again: python -m simulation.ownership --seed {each} --transitions {transitions}"
            )
            raise SystemExit(1) from None
        faults = ", ".join(f"{number} x {name}" for name, number in tally.faults.items())
        events = ", ".join(f"{number} x {name}" for name, number in tally.events.items())
        print(
            f"seed {each}: {tally.transitions} transitions in {tally.seconds:.0f} simulated s "
            f"({time.monotonic() - began:.0f} s), {tally.rebuilds} rebuilds, {tally.restored} "
            f"records restored; {faults}; {events}",
            flush=True,
        )


if __name__ == "__main__":
    typer.run(main)
