"""Runs of samples on one side of the level: where their sum passes a bound, the level has shifted.

up, down = sums of z beyond a drift (Page's CUSUM); z is a residual in standard deviations
run      = the samples since the sum was last zero
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trimtab.arrays import Bools, Floats
from trimtab.load_model.estimating.estimates import Estimates
from trimtab.load_model.odds import DRIFT


class Runs(NamedTuple):
    """(m,) run columns of `Estimates`, one sample later."""

    up: Floats
    rise: Floats
    rising: Floats
    down: Floats
    fall: Floats
    falling: Floats

    def beyond(self, bound: float) -> Bools:
        """(m,) whether a sum has passed the bound."""
        beyond: Bools = (self.up > bound) | (self.down > bound)
        return beyond

    def mean(self, bound: float) -> tuple[Floats, Floats]:
        """(m,) mean and number of the samples in the run of the sum that passed the bound."""
        rises = self.up > bound
        length = np.where(rises, self.rising, self.falling)
        return np.where(rises, self.rise, self.fall) / np.maximum(length, 1), length


def follow_runs(old: Estimates, z: Floats, shares: Floats, news: Bools) -> Runs:
    """The runs after (m,) ``z`` and the samples ``shares``, where there are any (``news``)."""
    up = np.where(news, np.maximum(old.up + z - DRIFT, 0.0), old.up)
    down = np.where(news, np.maximum(old.down - z - DRIFT, 0.0), old.down)
    return Runs(
        up,
        *_run(up, old.rise, old.rising, shares, news),
        down,
        *_run(down, old.fall, old.falling, shares, news),
    )


def _run(
    above: Floats, run: Floats, length: Floats, shares: Floats, news: Bools
) -> tuple[Floats, Floats]:
    """Sum and number of the samples since ``above`` was zero."""
    running = above > 0
    return (
        np.where(news, np.where(running, run + shares, 0.0), run),
        np.where(news, np.where(running, length + 1, 0.0), length),
    )


def find_level_before_run(old: Estimates) -> Floats:
    """(m,) the level without the samples of the run: a shift must not hide behind its own effect on
    the average."""
    rises = old.up > old.down
    run, length = np.where(rises, old.rise, old.fall), np.where(rises, old.rising, old.falling)
    weight = old.weight - length
    apart = (length > 0) & (weight >= 1.0)
    without = (old.level * old.weight - run) / np.where(apart, weight, 1.0)
    level: Floats = np.where(apart, np.maximum(without, 0.0), old.level)
    return level
