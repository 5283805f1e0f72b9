"""Logs load reports that were rejected for a figure that no hardware can have.

A broker with a wrong reading has it in every report: the log names it again after a while, and
limits how many it names.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import structlog

from trimtab.wire.rows import DeadLetter

log = structlog.get_logger()

REPEAT_MS: Final = 600_000
"""Time between two lines about the same figure of the same broker."""

MOST: Final = 20
"""Most lines for a batch. Only logged figures are remembered, so this bounds memory too."""


class RejectedReportLog:
    """Logs rejected reports, each figure of a broker once in `REPEAT_MS`; one for each query."""

    def __init__(self) -> None:
        self._logged: dict[tuple[str, str], int] = {}
        """Broker's key and the field, to the timestamp of the batch that logged it."""

    def tell(self, letters: Iterable[DeadLetter], at_ms: int) -> None:
        """Log each figure of a batch's dead letters that was not logged lately; ``at_ms`` is the
        batch's timestamp."""
        self._logged = {
            figure: ms for figure, ms in self._logged.items() if 0 <= at_ms - ms < REPEAT_MS
        }
        new = {
            (letter.key, letter.field): letter
            for letter in letters
            if letter.field and (letter.key, letter.field) not in self._logged
        }
        for figure, letter in list(new.items())[:MOST]:
            self._logged[figure] = at_ms
            cluster, _, broker = letter.key.partition("/")
            log.warning(
                "a load report is rejected as implausible",
                cluster=cluster,
                broker=broker,
                field=letter.field,
                cause=letter.detail,
            )
        if len(new) > MOST:
            log.warning("further load reports are rejected as implausible", figures=len(new) - MOST)
