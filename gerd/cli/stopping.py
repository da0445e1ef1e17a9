"""What Ctrl-C and a lack of memory say while a command writes what can be continued."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gerd.errors import GerdError


class StoppedError(GerdError):
    """The user pressed Ctrl-C."""

    exit_code = 130


@contextmanager
def stoppable(out: Path | str) -> Iterator[None]:
    """Around work that writes into `out`."""
    try:
        yield
    except KeyboardInterrupt:
        raise StoppedError(f"stopped; {out} keeps what is finished, and the same command continues") from None
    except MemoryError:
        raise GerdError("not enough memory for recordings of this length and size") from None
