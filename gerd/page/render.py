"""Recordings as files to look at: what `gerd render` and `gerd.render` write.

A recording, the members of a family or a config in; a video, a picture or a page in one HTML file out, as its ending
says.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from gerd.config.config import Config
from gerd.config.load import AnyConfig, as_config
from gerd.config.sweep import Which, member_count
from gerd.errors import GerdError, shorten
from gerd.page.answers import save_page
from gerd.pictures import render as pictures
from gerd.pictures.video import Progress
from gerd.recording.recording import Recording
from gerd.recording.simulate import simulate, simulate_family

Shown = Recording | Sequence[Recording]


def render(
    source: Shown | AnyConfig,
    path: str | Path,
    kind: str | None = None,
    *,
    index: int = 0,
    member: Which | None = None,
    family: bool = False,
    start: int = 0,
    stop: int | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> None:
    """Write a video (.gif, .mp4), a picture (.png, .svg, .pdf) or a page (.html) of a recording.

    `source` is a recording, or a config (or its path) of which `index` and `member` name one; `family` shows all
    members of the index side by side, and so does a list of recordings. `kind` and `options` are those of the command:
    video, frame, sheet, cloud, rate, curves, parameters, stages; step, count, overlay, side_by_side, zoom, fps. Steps
    are shown from `start` up to `stop`.
    """
    path, shown = Path(path), source
    if isinstance(source, str) or not isinstance(source, Recording | Sequence):
        check(path, kind, options, family=family)
        if family and member is not None:
            raise GerdError(f"member {shorten(member)}: a family is all members; allowed: one of both")
        shown = family_of(as_config(source), index) if family else simulate(source, index, member)
    elif index or member is not None or family:
        raise GerdError("index, member and family choose a recording of a config; this is a recording already")
    if path.suffix.lower() != ".html":
        pictures.render(cast("Shown", shown), path, kind, start=start, stop=stop, progress=progress, **options)
        return
    check(path, kind, options)
    recordings = [shown] if isinstance(shown, Recording) else cast("Sequence[Recording]", shown)
    save_page([recording.window(start, stop) for recording in recordings], path)


def family_of(config: Config, index: int) -> list[Recording]:
    """All members of an index, if they fit into a picture."""
    pictures.check_members(member_count(config))
    return simulate_family(config, index)


def check(path: Path, kind: str | None, options: dict[str, Any], *, family: bool = False) -> None:
    """A clear error if `render` could not write such a file."""
    if path.suffix.lower() != ".html":
        pictures.check(path, kind, options, family=family)
    elif kind or options:
        raise GerdError(f"{path}: a page shows everything, and has no kind or options")
