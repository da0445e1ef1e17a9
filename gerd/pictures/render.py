"""Pictures and videos of recordings as files: what `gerd render` writes.

A recording or the members of a family in, a file out; its ending and the kind say what is drawn. Videos (GIF, MP4) are
made by `video.py`, stills (PNG, SVG, PDF) are the figures of `figure.py`. A file is written whole or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import signature
from pathlib import Path
from typing import Any

from gerd.errors import GerdError
from gerd.pictures import figure, video
from gerd.recording.recording import Recording
from gerd.storage.whole import written_whole

VIDEOS, STILLS = (".gif", ".mp4"), (".png", ".svg", ".pdf")
KINDS: dict[str, Callable[..., Any]] = {"video": video.write, **figure.KINDS}
OF_FAMILIES: dict[str, Callable[..., Any]] = {"video": video.write, "sheet": figure.family}


def render(
    recordings: Recording | Sequence[Recording],
    path: str | Path,
    kind: str | None = None,
    *,
    start: int = 0,
    stop: int | None = None,
    progress: video.Progress | None = None,
    **options: Any,
) -> None:
    """Write the steps from `start` up to `stop` of a recording, or of the members of a family, as a picture.

    Without a kind, a GIF or MP4 is a video and any other file a contact sheet. `options` are those of the kind: of
    `video.write`, or of the function of that name in `figure.py`.
    """
    path, alone = Path(path), isinstance(recordings, Recording)
    kind = check(path, kind, options, family=not alone)
    shown: Any
    if isinstance(recordings, Recording):
        shown = _part(recordings, start, stop)
    else:
        check_members(len(recordings))
        shown = [_part(recording, start, stop) for recording in recordings]
    if kind == "video":
        video.write(shown, path, progress=progress, **options)
        return
    import matplotlib

    with written_whole(path) as draft, matplotlib.rc_context(figure.STYLE):
        figure.save((KINDS if alone else OF_FAMILIES)[kind](shown, **options), draft, path.suffix.lower()[1:])


def _part(recording: Recording, start: int, stop: int | None) -> Recording:
    part = recording.window(start, stop)
    if part.steps < 1:
        end = recording.steps if stop is None else stop
        raise GerdError(f"steps {start} up to {end}: there are none; the recording has {recording.steps} steps")
    return part


def check_members(count: int) -> None:
    """An error if so many members do not fit into a picture."""
    if not 1 <= count <= figure.MOST_PANELS:
        raise GerdError(
            f"{count} members: one picture shows 1 to {figure.MOST_PANELS}; sweep fewer values, or show one"
        )


def check(path: Path, kind: str | None, options: dict[str, Any], *, family: bool = False) -> str:
    """The kind of picture that `render` would write; a clear error if it could not."""
    ending, kinds = path.suffix.lower(), OF_FAMILIES if family else KINDS
    if ending not in VIDEOS + STILLS:
        raise GerdError(f"{path}: the file to write must end in one of {', '.join(VIDEOS + STILLS)} or .html")
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
