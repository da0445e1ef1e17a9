"""What `gerd conform` does: the name of an emulator and a config in, lines on standard output and a file out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gerd.cli.progress import Bar
from gerd.cli.terminal import say
from gerd.config.config import Config
from gerd.errors import GerdError
from gerd.measures.conformance import Conformance, ConformanceCurve, each_conformance
from gerd.measures.named import named_function
from gerd.storage.whole import write_whole

WRITTEN = {".json": ConformanceCurve.json, ".csv": ConformanceCurve.csv}


def conform_to(
    config: Config,
    emulator: str,
    rates: Sequence[float],
    out: Path | None,
    *,
    index: int,
    member: int,
    window_us: int | None,
) -> None:
    """Print a line for each rate, and write the file anew after each."""
    if out is not None and out.suffix not in WRITTEN:
        raise GerdError(f"--out {out}: allowed: a name that ends in {' or '.join(WRITTEN)}")
    if out is not None and not out.parent.is_dir():
        raise GerdError(f"--out {out}: there is no folder {out.parent}")
    function = named_function("emulator", emulator, "my_emulators:mine")
    found: list[Conformance] = []
    try:
        with Bar("rates", len(rates)) as bar:
            for point in each_conformance(function, config, rates, index=index, member=member, window_us=window_us):
                found.append(point)
                if out is not None:
                    write_whole(out, WRITTEN[out.suffix](ConformanceCurve(tuple(found))).encode())
                bar(1)
    finally:  # what is known when an emulator fails, or Ctrl-C is pressed
        if found:
            say(ConformanceCurve(tuple(found)))
