"""The progress bar of the commands: drawn on standard error, and only if that is a terminal."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn


class Bar:
    """A bar with rate and time left; counts what it is called with."""

    def __init__(self, what: str, total: int):
        columns = ("{task.fields[rate]}", TimeRemainingColumn(compact=True), TextColumn("left"))
        self._bar = Progress(
            TextColumn(what), BarColumn(), MofNCompleteColumn(), *columns, console=Console(stderr=True)
        )
        self._task = self._bar.add_task(what, total=total, rate="")
        self.done = 0

    def __enter__(self) -> Bar:
        if self._bar.console.is_terminal:
            self._bar.start()
        return self

    def __call__(self, made: int) -> None:
        self.done += made
        elapsed = self._bar.tasks[0].elapsed
        rate = f"{self.done / elapsed:.3g}/s" if elapsed else ""
        self._bar.update(self._task, advance=made, rate=rate)

    def __exit__(self, *error: Any) -> None:
        if self._bar.console.is_terminal:
            self._bar.stop()
