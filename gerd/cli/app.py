"""The command line: `gerd new`, `schema`, `check`, `generate`, `info`, `verify`, `render`, `export`, `play`, `view`.

What is slow to import is imported by the commands that need it, so that `gerd --help` answers at once.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gerd.errors import GerdError, counted

if TYPE_CHECKING:
    from gerd.config.config import Config
    from gerd.recording.recording import Recording

app = typer.Typer(
    help="Event-camera recordings of 2D shapes under exactly controlled motion, with the exact ground truth.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

ConfigFile = Annotated[Path, typer.Argument(metavar="CONFIG", help="A config file (YAML).")]
DatasetFolder = Annotated[
    str, typer.Argument(metavar="DATASET", help="What gerd generate has written: a folder or a URL.")
]
Count = Annotated[
    int, typer.Option("-n", "--count", min=1, max=2**32, help="Recordings, each with all members of the sweep.")
]
Overrides = Annotated[
    list[str] | None, typer.Option("--set", metavar="PATH=VALUE", help="Override a field; may be given several times.")
]
Trust = Annotated[bool, typer.Option("--trust", help="Let the config run the Python functions that it names.")]
Device = Annotated[str, typer.Option(help="Where to compute: cpu, cuda, cuda:1 …; the result is the same.")]

STARTER = """\
# A config for gerd. Every field but `actors` has a default; docs/config.md lists them all.
# Look at it with:  gerd check {name}    gerd render {name} out.gif
# Make data with:   gerd generate {name} data/ -n 100

seed: 7                                 # the same seed gives the same bits, on any machine
sensor: {{width: 128, height: 96}}        # pixels
steps: 60                               # length of a recording
upsampling: 8                           # sub-pixels per pixel, along each axis

noise:                                  # probabilities
  background: 0.001                     # a pixel fires regardless, per pixel and step
  shape: 0                              # a covered pixel is missing in one frame
  event: 0                              # an event is dropped

actors:                                 # from the farthest to the nearest
  - shape: square                       # or circle, triangle, {{polygon: …}}, {{svg: …}}, {{mask: …}}, {{text: …}}
    translation:                        # pixels, x to the right and y down
      start: uniform                    # any place where the shape lies inside the frame
      velocity: {{uniform: [-1, 1]}}      # pixels per step, drawn once for each axis
      acceleration: {{normal: [0, 0.02]}} # drawn anew each step: Brownian motion; 0 for constant velocity
      border: bounce                    # or wrap, free
    scale: {{start: {{uniform: [15, 40]}}, velocity: 0, acceleration: 0}}     # pixels
    rotation: {{start: uniform, velocity: {{uniform: [-3, 3]}}, acceleration: 0}} # degrees, clockwise

# sweep:                                # each recording once for every value, all else equal, noise included
#   time_scale: [0.5, 1, 2]
"""


def _version(wanted: bool) -> None:
    if wanted:
        from gerd.version import __version__

        typer.echo(f"gerd {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """What `gerd` takes before the name of a command; its help is that of the app."""


@app.command()
def new(path: Annotated[Path, typer.Argument(help="The file to write.")] = Path("gerd.yaml")) -> None:
    """Write a commented starter config."""
    from shlex import quote

    try:
        with open(path, "x", encoding="utf-8") as file:
            file.write(STARTER.format(name=quote(str(path))))
    except FileExistsError:
        raise GerdError(f"{path}: exists already; give another name") from None
    except OSError as error:
        raise GerdError(f"{path}: cannot be written: {error.strerror}") from None
    typer.echo(f"wrote {path}; next: gerd check {quote(str(path))}")


@app.command()
def schema() -> None:
    """Print the JSON schema of a config, for editors."""
    import json

    from gerd.config.config import Config

    typer.echo(json.dumps(Config.model_json_schema(), indent=2, ensure_ascii=False))


@app.command()
def check(config: ConfigFile, count: Count = 1, set_: Overrides = None, trust: Trust = False) -> None:
    """Validate a config and show what it would make: the first scene, the number of recordings, the size."""
    from gerd.cli.describe import dry_run

    dry_run(_load(config, set_, trust), count)


@app.command()
def generate(
    config: ConfigFile,
    out: Annotated[
        str, typer.Argument(metavar="OUT", help="The folder or URL (s3://…) to write; continued if it was begun.")
    ],
    count: Count = 100,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes; as many as cores unless told.")] = None,
    device: Annotated[
        str | None,
        typer.Option(help="cpu, cuda, cuda:1 …; the cpu unless told, and on a cluster its GPUs if it has any."),
    ] = None,
    engine: Annotated[str, typer.Option(help="Who does the work: local (this machine) or ray (a cluster).")] = "local",
    address: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Of the Ray cluster; the one of this machine unless told.")
    ] = None,
    shard: Annotated[
        str, typer.Option(metavar="I/N", help="Make part I of N only: N such commands, in any order, make the dataset.")
    ] = "1/1",
    set_: Overrides = None,
    trust: Trust = False,
) -> None:
    """Make a dataset. Run the same command again to continue one that was interrupted."""
    import time

    from gerd.config.sweep import member_count
    from gerd.storage.generate import generate as make
    from gerd.storage.generate import parse_part, recordings_of_part

    part, chosen = parse_part(shard), _load(config, set_, trust)
    total = recordings_of_part(count * member_count(chosen), part)
    begun = time.monotonic()
    try:
        with _Progress("recordings", total) as advance:
            data = make(
                chosen,
                out,
                count,
                workers=workers,
                device=device,
                engine=engine,
                address=address,
                part=part,
                progress=advance,
            )
    except MemoryError:
        typer.echo("error: not enough memory for recordings of this length and size", err=True)
        sys.exit(1)
    except KeyboardInterrupt:
        raise _StoppedError(f"stopped; {out} keeps what is finished, and the same command continues") from None
    seconds = time.monotonic() - begun
    rate = f", {advance.done} made or checked at {advance.done / seconds:.3g} recordings/s" if advance.done else ""
    size = f"{counted(len(data), 'recording')} in {counted(data.shard_count, 'shard')}"
    if not data.manifest.complete:
        size = f"part {shard}, {counted(total, 'recording')}; other parts are still to be made of {size}"
    typer.echo(f"{out}: {size} ({seconds:.1f} s{rate})")


@app.command()
def info(dataset: DatasetFolder) -> None:
    """Print what a dataset holds."""
    from gerd.cli.describe import describe

    describe(dataset)


@app.command()
def verify(
    dataset: DatasetFolder,
    regenerate: Annotated[
        bool, typer.Option("--regenerate", help="Also make every recording again and compare.")
    ] = False,
    trust: Trust = False,
) -> None:
    """Check a dataset against its digests; every fault is printed, and the exit code is 1 if there is one."""
    from gerd.storage.recordings import Recordings
    from gerd.storage.verify import verify as inspect

    faults = 0
    with _Progress("recordings", len(Recordings(dataset))) as advance:
        for looked_at, found in inspect(dataset, regenerate=regenerate, trust=trust):
            advance(looked_at)
            for fault in found:
                faults += 1
                typer.echo(f"error: {fault}", err=True)
    if faults:
        raise typer.Exit(1)
    again = " and the same when made again" if regenerate else ""
    typer.echo(f"{dataset}: {counted(advance.done, 'recording')}, all sound{again}")


@app.command()
def render(
    source: Annotated[Path, typer.Argument(metavar="CONFIG|DATASET", help="What to show: a config file or a dataset.")],
    out: Annotated[
        Path, typer.Argument(metavar="OUT", help="The file to write: .gif, .mp4, .png, .svg, .pdf or a page, .html.")
    ],
    kind: Annotated[
        str | None,
        typer.Option(help="video, frame, sheet, cloud, rate, curves (of T), parameters or stages (of the simulation)."),
    ] = None,
    index: Annotated[int, typer.Option(min=0, help="Which recording; of a dataset, which of all its members.")] = 0,
    start: Annotated[int, typer.Option(help="The first step to show; -10 is the tenth from the end.")] = 0,
    stop: Annotated[int | None, typer.Option(help="The step to stop before.")] = None,
    step: Annotated[int | None, typer.Option(help="Of a frame: which step.")] = None,
    count: Annotated[int | None, typer.Option(help="Of a sheet, the number of frames; of stages, of steps.")] = None,
    overlay: Annotated[bool, typer.Option("--overlay", help="Draw outlines, centre paths and boxes, too.")] = False,
    side_by_side: Annotated[bool, typer.Option("--side-by-side", help="Show the brightness beside.")] = False,
    zoom: Annotated[int | None, typer.Option(min=1, max=32, help="Of a video: screen pixels per pixel.")] = None,
    fps: Annotated[float | None, typer.Option(min=0.1, help="Of a video: frames per second; GIF: at most 50.")] = None,
    set_: Overrides = None,
    trust: Trust = False,
) -> None:
    """Show a recording of a config, or one of a dataset: as a video, a picture or a page. Look before you generate."""
    wishes = {"step": step, "count": count, "overlay": overlay or None, "side_by_side": side_by_side or None}
    options = {name: wish for name, wish in {**wishes, "zoom": zoom, "fps": fps}.items() if wish is not None}
    if out.suffix.lower() == ".html":
        from gerd.page.answers import save_page

        if kind or options:
            raise GerdError(f"{out}: a page shows everything, and has no kind or options")
        recording = _recording(source, index, set_, trust).window(start, stop)
        save_page([recording], out)
    else:
        from gerd.pictures.video import check, render

        check(out, kind, options)
        recording = _recording(source, index, set_, trust)
        with _Progress("pages", recording.window(start, stop).steps) as advance:
            render(recording, out, kind, start=start, stop=stop, progress=advance, **options)
    typer.echo(f"wrote {out}: {recording!r}")


@app.command()
def export(
    dataset: DatasetFolder,
    out: Annotated[Path, typer.Argument(metavar="OUT", help="The folder to write; continued if it was begun.")],
    format_: Annotated[
        str,
        typer.Option(
            "--format",
            help="evt2, aedat4, evt3, dat, es, hdf5-dsec, hdf5, rpg, csv or npz; frames for the grey-level video.",
        ),
    ] = "evt2",
    levels: Annotated[
        tuple[int, int], typer.Option(help="Of frames: the grey values of the background and of brightness 1.")
    ] = (0, 255),
) -> None:
    """Write a dataset in the format of other tools, a file for each recording and its ground truth beside it."""
    from gerd.exchange.export import export_dataset
    from gerd.storage.recordings import Recordings

    try:
        with _Progress("recordings", len(Recordings(dataset))) as advance:
            count = export_dataset(dataset, out, format_, levels=levels, progress=advance)
    except KeyboardInterrupt:
        raise _StoppedError(f"stopped; {out} keeps what is finished, and the same command continues") from None
    typer.echo(f"{out}: {counted(count, 'recording')} as {format_}, with ground truth")


@app.command()
def play(
    source: Annotated[Path, typer.Argument(metavar="CONFIG|DATASET", help="What to send: a config file or a dataset.")],
    to: Annotated[str, typer.Option(help="- for standard output, udp://HOST:PORT, or a file or pipe.")] = "-",
    format_: Annotated[
        str | None, typer.Option("--format", help="csv or binary; over UDP aestream or binary. The first of each.")
    ] = None,
    index: Annotated[int, typer.Option(min=0, help="Which recording; of a dataset, which of all its members.")] = 0,
    speed: Annotated[float, typer.Option(help="2 is twice as fast as real time; inf does not wait.")] = 1.0,
    loop: Annotated[bool, typer.Option("--loop", help="Start anew at the end.")] = False,
    endless: Annotated[
        bool, typer.Option("--endless", help="Go on simulating after the last step of a config.")
    ] = False,
    truth: Annotated[
        str | None, typer.Option(help="Where the ground truth goes, as lines of JSON: a file or -.")
    ] = None,
    set_: Overrides = None,
    trust: Trust = False,
) -> None:
    """Send the events of a recording in real time. Ctrl-C ends it."""
    from gerd.exchange.live import send

    chosen = _recording(source, index, set_, trust) if source.is_dir() else _load(source, set_, trust)
    sent = send(
        chosen,
        to,
        format=format_,
        index=index,
        speed=speed,
        loop=loop,
        endless=endless,
        truth_to=truth,
        report=lambda message: typer.echo(message, err=True),
    )
    typer.echo(str(sent), err=True)


@app.command()
def view(
    source: Annotated[Path, typer.Argument(metavar="CONFIG|DATASET", help="What to show: a config file or a dataset.")],
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="Where to listen; 8350 or one after it unless told.")
    ] = None,
    host: Annotated[
        str, typer.Option(help="Which address to listen at. Other machines can reach any but this one.")
    ] = "127.0.0.1",
    browser: Annotated[bool, typer.Option(help="Open a browser, if there is one.")] = True,
    set_: Overrides = None,
    trust: Trust = False,
) -> None:
    """Show a config, to play with, or a dataset, to browse, as a page on this machine. Ctrl-C ends it."""
    from gerd.page.server import serve

    serve(source, host=host, port=port, overrides=set_ or (), trust=trust, browser=browser, say=typer.echo)


@app.command()
def study(
    name: Annotated[
        str | None, typer.Argument(help="timescale, sparse, covariance, noise or symmetry; the last, for --model.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="The folder to write, out/NAME unless told; continued if it was begun.")
    ] = None,
    from_: Annotated[
        Path | None,
        typer.Option("--from", metavar="DIR", help="Draw the report of this folder again; compute nothing."),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Small: minutes on two cores instead of a GPU.")] = False,
    smoke: Annotated[bool, typer.Option("--smoke", help="Tiny: seconds, to see that it runs.")] = False,
    device: Annotated[str, typer.Option(help="Where to compute: cpu, cuda, cuda:1 …")] = "cpu",
    seed: Annotated[int, typer.Option(min=0, max=2**31, help="Of the recordings and the networks.")] = 0,
    epochs: Annotated[int | None, typer.Option(min=1, help="Of training.")] = None,
    seeds: Annotated[int | None, typer.Option(min=1, help="Networks of each kind.")] = None,
    minutes: Annotated[float | None, typer.Option(help="Stop after this time; the same command continues.")] = None,
    model: Annotated[
        str | None, typer.Option(metavar="MODULE:BUILD", help="Of symmetry: a function that makes your network.")
    ] = None,
    checkpoint: Annotated[Path | None, typer.Option(help="Of --model: its weights, a state dict.")] = None,
    config: Annotated[Path | None, typer.Option(metavar="CONFIG", help="Of symmetry: other stimuli.")] = None,
) -> None:
    """Measure which symmetries networks respect: train, test, write a report. Run it again to continue."""
    from gerd.studies.lab.running import run_study

    if quick and smoke:
        raise GerdError("--quick, --smoke: allowed is one of them")
    size = "smoke" if smoke else "quick" if quick else "full"
    own = {"model": model, "checkpoint": checkpoint, "config": None if config is None else _load(config, None, False)}
    try:
        report = run_study(
            name, out, from_, size, {"epochs": epochs, "seeds": seeds}, device=device, seed=seed, minutes=minutes, **own
        )
    except KeyboardInterrupt:
        raise _StoppedError("stopped; what is finished is kept, and the same command continues") from None
    typer.echo(f"wrote {report}")


def _load(path: Path, overrides: list[str] | None, trust: bool) -> Config:
    from gerd.config.load import load

    return load(path, overrides=overrides or (), trust=trust)


def _recording(source: Path, index: int, overrides: list[str] | None, trust: bool) -> Recording:
    if source.is_dir():
        from gerd.storage.recordings import Recordings

        if overrides:
            raise GerdError(f"{source}: is a dataset, whose fields cannot be changed; --set goes with a config")
        try:
            return Recordings(source)[index]
        except IndexError as error:
            raise GerdError(str(error)) from None
    from gerd.recording.simulate import simulate

    return simulate(_load(source, overrides, trust), index)


class _Progress:
    """A progress bar with rate and time left, on the terminal only; counts what it is called with."""

    def __init__(self, what: str, total: int):
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        columns = ("{task.fields[rate]}", TimeRemainingColumn(compact=True), TextColumn("left"))
        self._bar = Progress(
            TextColumn(what), BarColumn(), MofNCompleteColumn(), *columns, console=Console(stderr=True)
        )
        self._task = self._bar.add_task(what, total=total, rate="")
        self.done = 0

    def __enter__(self) -> _Progress:
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


class _StoppedError(GerdError):
    """The user pressed Ctrl-C."""

    exit_code = 130


def main() -> None:
    """Run the command line; a user's mistake is a message and an exit code, not a traceback."""
    try:
        app()
    except GerdError as error:
        for line in str(error).splitlines():
            typer.echo(f"error: {line}", err=True)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        sys.exit(130)
    except (BrokenPipeError, SystemExit) as error:
        if isinstance(error, SystemExit) and not isinstance(error.__context__, BrokenPipeError):
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # whoever read the output has seen enough
        sys.exit(0)
