"""How far an average lags behind a load that goes on growing or falling.

lag      = average of what samples have beyond the level, in parts of it, with the level's half-life
believed = lag * (1 - (surely * error / lag)^2), and none below surely * error
error    = standard deviation of the level by chance: that of the lag is no larger

Level and lag together follow a steady growth without delay (Brown's double exponential smoothing,
1956). But they swing more with noise than the level alone does: so the lag counts only as far as
noise does not explain it, and noise that lasts explains more (`noise_memory`).
"""

from __future__ import annotations

from typing import Final

import numpy as np

from trimtab.arrays import Floats

_SURELY: Final = 2.5
"""Standard errors that chance hardly reaches; the lag of noise without memory has 0.7 of one.
Lower: bundles that leapt, or burst, seem to grow on; higher: a load that grows for hours is
underestimated until it has grown much."""
_TINY: Final = 1e-30
"""Floor of squares that are divided by."""


def find_believed_part(lag: Floats, variance: Floats) -> Floats:
    """(m,) the part of the ``lag`` that counts; ``variance`` is the level's, in parts of its
    square."""
    part: Floats = np.maximum(1.0 - _SURELY**2 * variance / np.maximum(lag**2, _TINY), 0.0)
    return part


def widen(part: Floats) -> Floats:
    """(m,) variance of the level with this ``part`` of the lag, as a multiple of the level's own.

    Of noise without memory the lag has half the level's variance, and half of it in common.
    """
    return 1.0 + part + part**2 / 2.0
