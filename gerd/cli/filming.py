"""The commands of `gerd` for a camera before a screen: options in; printed lines and datasets out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from gerd.cli.options import DatasetFolder, Read
from gerd.cli.terminal import say
from gerd.errors import GerdError, counted


def register(
    recording: Annotated[Path, Argument(metavar="RECORDING", help="A camera's file of events.")],
    stimulus: Annotated[
        Path, Argument(metavar="STIMULUS.json", help="The file that gerd stimulus wrote beside the video.")
    ],
    dataset: Annotated[str, Argument(metavar="DATASET", help="The folder or URL to write.")],
    picture: Annotated[
        Path | None, Option(help="Picture of the fit: .png, .svg or .pdf; default: DATASET.png beside the dataset.")
    ] = None,
    read: Read = None,
) -> None:
    """Find when and where a camera saw the video of gerd stimulus, and write its scenes as a dataset of real events.

    The dataset has the events in the frame of the scene, and the exact ground truth of what was shown. The command
    prints how well clock and view fit. A bad fit is refused, but its picture is still written.
    """
    from gerd.cli.progress import Bar
    from gerd.cli.sources import read_options
    from gerd.screen.picture import check
    from gerd.screen.register import register as made
    from gerd.storage.recordings import Recordings

    if not recording.exists():
        raise GerdError(f"{recording}: there is no such file")
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


def fit(
    dataset: DatasetFolder,
    count: Annotated[int, Option("-n", "--count", min=1, help="The most recordings to use.")] = 100,
    out: Annotated[Path | None, Option(help="Also write the result into this file.")] = None,
) -> None:
    """Estimate the camera of a dataset, as a part of a config that you can paste, with intervals as comments.

    The dataset was made by gerd register, or is a simulated one. Thresholds and their spread are estimated from the
    events of passing edges; background, hot and dead pixels from the events of pixels while nothing passes them.
    """
    from gerd.cli.progress import Bar
    from gerd.screen.fit import fit as fitted
    from gerd.storage.whole import write_whole

    with Bar("recordings", None) as bar:
        found = fitted(dataset, count=count, progress=bar)
    say(found.yaml, nl=False)
    if out is not None:
        write_whole(out, found.yaml.encode())
