"""Settings of tests that are about Pulsar's ways."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

PULSAR: Final[Mapping[str, str]] = {
    "round.shedding": "threshold",
    "round.placement": "least-long-term-rate",
    "split.trigger": "long-term",
}
"""What a Pulsar broker does unless told otherwise."""
