"""Where a bundle is split: one algorithm per file, chosen by Pulsar's name for it.

A divider returns the boundaries of the children, none if there is nothing to split. It does not
check them: `children` does, for all algorithms. A new one also needs its line in `DIVIDERS` and its
word in `trimtab.settings.words`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from trimtab.settings import SplitSettings
from trimtab.splitting import flow_or_qps, range_equally, specified, topic_count
from trimtab.splitting.request import SplitRequest

Divider = Callable[[SplitRequest, SplitSettings], list[int]]

DIVIDERS: Final[Mapping[str, Divider]] = {
    "range_equally_divide": range_equally.divide,
    "topic_count_equally_divide": topic_count.divide,
    "specified_positions_divide": specified.divide,
    "flow_or_qps_equally_divide": flow_or_qps.divide,
}
