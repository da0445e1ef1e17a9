"""The command of `gerd` that makes events of somebody else's pictures: options in; a file of events out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from gerd.cli.completing import FORMATS, configs, one_of
from gerd.cli.options import Index, Member, Overrides, Trust
from gerd.cli.sources import load_config, member_of
from gerd.cli.terminal import say
from gerd.errors import GerdError, counted


def events(
    pictures: Annotated[Path, Argument(metavar="VIDEO|FOLDER", help="A video, or a folder of pictures.")],
    out: Annotated[Path, Argument(metavar="OUT", help="The file of events to write.")],
    config: Annotated[
        Path | None,
        Option(
            metavar="CONFIG", help="Config whose pixels and noises to use; it needs no actors.", autocompletion=configs
        ),
    ] = None,
    fps: Annotated[
        str | None,
        Option(help="Pictures per second: 30, 29.97, 30000/1001. Default: a video's own times, or timestamps.txt."),
    ] = None,
    format_: Annotated[
        str | None,
        Option(
            "--format",
            help="As in gerd export; default: by the end of the name of OUT.",
            autocompletion=one_of(*FORMATS),
        ),
    ] = None,
    index: Index = 0,
    member: Member = None,
    device: Annotated[str, Option(help="cpu, cuda, cuda:1 …")] = "cpu",
    set_: Overrides = None,
    trust: Trust = False,
) -> None:
    """Simulate the events of a video, or of pictures from another renderer, with the pixels of a config.

    Black is brightness 0 and white is 1; thresholds are shares of 1. Without a config, timing is exact: brightness is
    linear from picture to picture, and a pixel fires whenever it passes its threshold.
    """
    from gerd.cli.progress import Bar
    from gerd.cli.words import parse_fps
    from gerd.config.load import parse
    from gerd.exchange.formats import check_installed, format_of, write_events
    from gerd.pictures.seen import open_pictures
    from gerd.recording.from_frames import from_frames

    rate = None if fps is None else parse_fps(fps)
    kind = format_ or format_of(out)
    check_installed(kind)
    if out.exists():
        raise GerdError(f"{out}: exists already; give another name")
    chosen = (
        parse({}, overrides=["timing=exact", *(set_ or ())], scene=False)
        if config is None
        else load_config(config, set_, trust, scene=False)
    )
    seen = open_pictures(pictures, rate)
    with Bar("pictures", len(seen.times_us)) as bar:
        made = from_frames(
            seen.frames,
            seen.times_us,
            chosen.member(member_of(chosen, member)),
            index=index,
            device=device,
            progress=bar,
            title=out.name,
        )
    write_events(out, made, format=kind)
    say(f"wrote {out}: {counted(len(seen.times_us), 'picture')}, {counted(len(made), 'event')} as {kind}; {made!r}")
