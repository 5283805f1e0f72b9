"""Shows slow steps while they run: a spinner on a terminal, a line each elsewhere."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn


class Spinner:
    """Call it with each step as the step begins, which ends the previous one.

    Outside its `with` block a call only prints, so a holder of it may report later too.
    """

    def __init__(self, console: Console, *, plain: bool) -> None:
        self._console = console
        self._plain = plain
        self._progress = Progress(
            SpinnerColumn(finished_text="·"),
            TextColumn("{task.description}"),
            TimeElapsedColumn(),
            console=console,
            disable=plain,
        )
        self._open = False
        self._step: TaskID | None = None
        self._began = 0.0

    def __call__(self, step: str) -> None:
        self._finish()
        if self._plain or not self._open:
            self._console.print(step, highlight=False)
        if self._open:
            self._step = self._progress.add_task(step, total=1)
            self._began = time.monotonic()

    def _finish(self) -> None:
        if self._step is None:
            return
        self._progress.update(self._step, completed=1)
        self._step = None
        if self._plain:
            self._console.print(f"  {time.monotonic() - self._began:.1f} s", highlight=False)

    def __enter__(self) -> Self:
        self._open = True
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        if error is None:
            self._finish()
        self._step, self._open = None, False
        self._progress.stop()
