"""The commands of `gerd` for a camera before a screen: options in; printed lines and datasets out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from gerd.cli.options import Read
from gerd.cli.terminal import say
from gerd.errors import GerdError, counted


def register(
    recording: Annotated[Path, Argument(metavar="RECORDING", help="A camera's file of events.")],
    stimulus: Annotated[Path, Argument(metavar="STIMULUS.json", help="What gerd stimulus wrote beside the video.")],
    dataset: Annotated[str, Argument(metavar="DATASET", help="The folder or URL to write.")],
    picture: Annotated[
        Path | None, Option(help="How well all fits: .png, .svg or .pdf. Default: beside the dataset, DATASET.png.")
    ] = None,
    read: Read = None,
) -> None:
    """Find when and where a camera saw the video of gerd stimulus, and write its scenes as a dataset of real events.

    The dataset has the events in the frame of the scene, and the exact ground truth of what was shown. It prints how
    well clock and view fit. What does not fit well enough is refused; the picture is written all the same.
    """
    from gerd.cli.progress import Bar
    from gerd.cli.sources import read_options
    from gerd.screen.picture import check
    from gerd.screen.register import register as made
    from gerd.storage.recordings import Recordings

    options = read_options(recording, read)
    if options is None:
        raise GerdError(f"{recording}: allowed: a file of events, such as .raw, .dat, .aedat4, .h5, .npz or .csv")
    if picture is None and "://" not in dataset:
        picture = Path(f"{dataset.rstrip('/')}.png")
    if picture is not None:
        check(picture)
    with Bar("recordings", None) as bar:
        found = made(recording, stimulus, dataset, picture=picture, progress=bar, **options)
    say(str(found))
    drawn = f" and {picture}" if picture is not None else ""
    say(f"wrote {dataset}{drawn}: {counted(len(Recordings(dataset)), 'real recording')} with exact ground truth")
