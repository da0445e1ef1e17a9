"""The progress bar of the commands: drawn on standard error, and only if that is a terminal."""

from __future__ import annotations

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn


class Bar(Progress):
    """A bar with rate and, where the total is known, time left; counts what it is called with."""

    def __init__(self, what: str, total: int | None):
        rest = (MofNCompleteColumn(), "{task.fields[rate]}", TimeRemainingColumn(compact=True), TextColumn("left"))
        console = Console(stderr=True)
        super().__init__(TextColumn(what), BarColumn(), *rest, console=console, disable=not console.is_terminal)
        self.add_task(what, total=total, rate="")
        self.done = 0

    def stop(self) -> None:
        if not self.disable:  # or else rich before 14.3 ends the line that it has not drawn
            super().stop()

    def __call__(self, made: int) -> None:
        (task,) = self.tasks
        self.done += made
        rate = f"{self.done / task.elapsed:.3g}/s" if task.elapsed else ""
        self.update(task.id, advance=made, rate=rate)
