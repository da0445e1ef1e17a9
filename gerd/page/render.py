"""Recordings as files to look at: what `gerd render` and `gerd.render` write.

A recording or other events, the members of a family or a config in; a file out, whole or not at all. Its ending and the
kind say what is drawn: videos (.gif, .mp4) by `pictures/video.py`, stills (.png, .svg, .pdf) by `pictures/figure.py`,
and a page in one file (.html) by `answers.py`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from pathlib import Path
from typing import Any

from gerd.calls import explained
from gerd.config.config import Config
from gerd.config.load import AnyConfig, as_config
from gerd.config.sweep import Which, member_count
from gerd.errors import GerdError, shorten
from gerd.exchange.reading import is_event_file, read_events
from gerd.page.answers import save_page
from gerd.pictures import figure, video
from gerd.recording.events import Events
from gerd.recording.recording import Recording
from gerd.recording.simulate import simulate, simulate_family
from gerd.storage.whole import written_whole

VIDEOS = (".gif", ".mp4")
STILLS = (".png", ".svg", ".pdf")
PAGE = ".html"
KINDS: dict[str, Callable[..., object]] = {"video": video.write, **figure.KINDS}
OF_FAMILIES: dict[str, Callable[..., object]] = {"video": video.write, **figure.OF_FAMILIES}


@explained
def render(
    source: Events | Sequence[Events] | AnyConfig,
    path: str | Path,
    kind: str | None = None,
    *,
    index: int = 0,
    member: Which | None = None,
    family: bool = False,
    start: int = 0,
    stop: int | None = None,
    progress: video.Progress | None = None,
    **options: Any,
) -> None:
    """Write a video (.gif, .mp4), a picture (.png, .svg, .pdf) or a page (.html) of a recording.

    `source` is a recording or other `Events`, a file of events, or a config (or its path) with the `index` and `member`
    of a recording. `family` shows all members of the index side by side, as does a list of recordings. `kind` and
    `options` are those of the command. Kinds: video, frame, sheet, cloud, rate, curves, parameters, stages. Options:
    step, count, window, overlay, side_by_side, zoom, fps. Steps are shown from `start` up to, but without, `stop`.
    """
    path = Path(path)
    if isinstance(source, str | os.PathLike) and is_event_file(Path(source)):
        source = read_events(source)
    if isinstance(source, str | os.PathLike) and Path(source).is_dir():
        one = f"gerd.Recordings({str(source)!r})[0]"
        raise GerdError(f"{source}: is a folder; allowed: a recording, such as {one}, a config, or a file of events")
    shown: Events | Sequence[Events] | None = None
    if isinstance(source, Events) or (isinstance(source, Sequence) and not isinstance(source, str)):
        shown = source
        if index or member is not None or family:
            raise GerdError("index, member and family choose a recording of a config; this is a recording already")
    several = family or isinstance(shown, Sequence)
    kind = check(path, kind, options, family=several)
    if shown is None:
        if family and member is not None:
            raise GerdError(f"member {shorten(member)}: a family is all members; allowed: one of the two")
        config = as_config(source)  # type: ignore[arg-type]
        shown = family_of(config, index) if family else simulate(config, index, member)
    parts = []
    for recording in [shown] if isinstance(shown, Events) else shown:
        parts.append(recording.window(start, stop))
        if parts[-1].steps < 1:
            end = recording.steps if stop is None else stop
            raise GerdError(f"steps {start} up to {end}: there are none; the recording has {recording.steps} steps")
    if kind == PAGE:
        save_page(parts, path)
        return
    check_members(len(parts))
    drawn = parts if several else parts[0]
    if kind == "video":
        video.write(drawn, path, progress=progress, **options)
        return
    import matplotlib

    with written_whole(path) as draft, matplotlib.rc_context(figure.STYLE):
        draw = (figure.OF_FAMILIES if several else figure.KINDS)[kind]
        figure.save(draw(drawn, **options), draft, path.suffix.lower()[1:])


def family_of(config: Config, index: int) -> list[Recording]:
    """All members of an index, if they fit into a picture."""
    check_members(member_count(config))
    return simulate_family(config, index)


def check_members(count: int) -> None:
    """An error if so many members do not fit into a picture."""
    if not 1 <= count <= figure.MOST_PANELS:
        most = figure.MOST_PANELS
        raise GerdError(f"{count} members: one picture shows 1 to {most}; sweep fewer values, or show one")


def check(path: Path, kind: str | None, options: Mapping[str, object], *, family: bool = False) -> str:
    """The kind of file that `render` would write; a clear error if it could not."""
    ending = path.suffix.lower()
    kinds = OF_FAMILIES if family else KINDS
    if ending == PAGE:
        if kind or options:
            raise GerdError(f"{path}: a page shows everything, and has no kind or options")
        return PAGE
    if ending not in VIDEOS + STILLS:
        raise GerdError(f"{path}: the file to write must end in one of {', '.join(VIDEOS + STILLS)} or {PAGE}")
    kind = kind or ("video" if ending in VIDEOS else "sheet")
    if kind not in kinds:
        raise GerdError(f"kind {kind!r}: allowed{' of a family' if family else ''}: {', '.join(kinds)}")
    allowed = VIDEOS if kind == "video" else STILLS
    if ending not in allowed:
        raise GerdError(f"{path}: a file of the kind {kind} must end in one of {', '.join(allowed)}")
    known = [name for name, option in signature(kinds[kind]).parameters.items() if option.kind is option.KEYWORD_ONLY]
    for name in options:
        if name not in known:
            takes = ", ".join(name.replace("_", "-") for name in known if name not in ("progress", "names"))
            wrong = f"{name.replace('_', '-')}: is no option of the kind {kind}"
            raise GerdError(f"{wrong}; its options are {takes}" if takes else f"{wrong}, which has none")
    if ending == ".mp4":
        video.ffmpeg()
    return kind
